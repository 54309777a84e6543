"""Run a subcommand; every failure becomes one line on stderr and an exit code."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

from openneutron.errors import InternalError, OpenNeutronError
from openneutron.extras import missing_extra
from openneutron.terminal import console
from openneutron.terminal.quiet import quiet

OK = 0
DIFFERS = 1  # the command worked and the answer is no
USER_ERROR = 2  # what click and most tools use for wrong options
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_VERBOSE = {"-v", "--verbose"}
_OBJECTS_BETWEEN_COLLECTIONS = 100_000  # twice what a command imports
BROKEN_PIPE = 141  # 128 + SIGPIPE

EXIT_CODES = """\
Exit codes: 0 done; 1 done, and the answer is no (a difference was found, a budget is broken); 2 an option, file or model
cannot be used; 70 a bug in OpenNeutron; 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code.

    Example:
        >>> main(["targets"])
    """
    # What is imported stays until the process ends: collections while a command starts find nothing.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    gc.freeze()  # the process ends and gives its memory back as a whole: what is left needs no last collection
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    # Anywhere on the line, because it says how to fail, not what to do.
    debug = "--debug" in arguments
    shown = debug or bool(_VERBOSE & set(arguments))
    try:
        words = [word for word in arguments if word not in {"--debug", *_VERBOSE}]
        with contextlib.nullcontext() if shown else quiet():
            code = _dispatch(words)
        sys.stdout.flush()
        return code
    except OpenNeutronError as error:
        if debug:
            raise
        bug = isinstance(error, InternalError)
        console.error(f"{error}. {console.PLEASE_REPORT}" if bug else str(error))
        return INTERNAL if bug else USER_ERROR
    except KeyboardInterrupt:
        if debug:
            raise
        console.error("interrupted")
        return INTERRUPTED
    except (console.ReaderGone, BrokenPipeError):
        # The reader has gone (`| head`); nothing more can be said on this pipe, not even by the interpreter at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        if debug:
            raise
        missing = _missing_package(error)
        # What an ONNX model needs is more than its own packages, and one extra brings it all.
        onnx = any(word.endswith(".onnx") for word in arguments)
        wanted = missing_extra(missing, "an ONNX model", "onnx") if onnx else missing_extra(missing)
        if wanted:
            console.error(str(wanted))
            return USER_ERROR
        if missing:
            hint = "`openneutron doctor` says what else is missing and how to get it"
            console.error(f"the Python package {missing} is not installed. Hint: {hint}")
            return USER_ERROR
        console.error(f"unexpected {type(error).__name__}: {_one_line(error)}. {console.PLEASE_REPORT}")
        return INTERNAL


def _dispatch(arguments: list[str]) -> int:
    try:
        import typer
    except ModuleNotFoundError:
        if arguments[:1] != ["doctor"]:
            raise
        return _diagnose_without_typer(arguments)
    from openneutron.cli.app import build

    # A shell that completes asks for every command's options.
    asked = next((word for word in arguments if not word.startswith("-")), "")
    app = build() if "_OPENNEUTRON_COMPLETE" in os.environ else build(asked, alone=arguments[:1] == [asked])
    # typer brings its own copy of click or uses the installed one; its exceptions lead to the right classes either way.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    click_error: Any = usage_error.__mro__[1]
    try:
        result = app(arguments or ["--help"], prog_name="openneutron", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except click_error as error:
        context = getattr(error, "ctx", None) if isinstance(error, usage_error) else None
        where = f" (see `{context.command_path} --help`)" if context else ""
        console.error(f"{error.format_message().strip().removesuffix('.')}{where}")
        return USER_ERROR
    return int(result or OK) if arguments else USER_ERROR


def _diagnose_without_typer(arguments: list[str]) -> int:
    """Run `openneutron doctor`, which must also work where typer is what is missing."""
    from openneutron.cli.shared.diagnosis import print_diagnosis

    return OK if print_diagnosis("--json" in arguments) else DIFFERS


def _missing_package(error: Exception) -> str:
    """The package that an import did not find, "" for any other error and for modules of our own."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    package = error.name.partition(".")[0]
    return "" if package == "openneutron" else package


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
