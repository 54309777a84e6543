"""Short cuts past typer and rich for `openneutron compile` and `openneutron doctor`.

Build systems call `compile` for each of many models, and importing the two takes longer than compiling a small one; `doctor`
must work where they are what is missing. What is not plainly a correct command line (help, a typing mistake, a missing value)
is left to typer, which knows how to explain it; both read the schema.
"""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

from openneutron.cli.shared.compiling import Request, run_compile
from openneutron.cli.shared.lean_numpy import import_lean
from openneutron.options import SCHEMA, checked, read_text
from openneutron.records import fields
from openneutron.terminal.quiet import quiet, without_warnings

_COMPLETION = "_OPENNEUTRON_COMPLETE"  # set by shells that ask typer for completions


def flags() -> dict[str, tuple[str, str]]:
    """Flag → (field of `Request` or name of the option, how its value is read)."""
    own = {f"--{field.name.replace('_', '-')}": (field.name, "path") for field in fields(Request)[1:5]}
    schema = {one.flag: (one.name, one.kind) for one in SCHEMA.values() if one.flag and one.public}
    own |= {"--force": ("force", "switch"), "--all": ("everything", "switch"), "--must-fit": ("must_fit", "switch")}
    model = {"--size": ("size", "names"), "--calibration": ("calibration", "text")}
    own |= {"--sandbox": ("sandbox", "switch"), "--sandbox-limits": ("sandbox_limits", "text")}
    return {**own, "-o": own["--output"], "--json": ("as_json", "switch"), **model, **schema}


def parse(words: list[str]) -> Request | None:
    """The request of a command line behind `compile`; None when typer should look at it.

    Example:
        >>> parse(["model.tflite", "--target", "mcxn94x"]).options
        {'target': 'mcxn94x'}
    """
    known = flags()
    values: dict[str, Any] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            places.append(word)
            continue
        name, given, value = word.partition("=")
        if name not in known or (given and not name.startswith("--")):
            return None
        field, kind = known[name]
        if kind == "switch":
            if given:
                return None
            values[field] = True
            continue
        if not given:
            value = next(rest, "-")
            if value.startswith("-"):
                return None
        if kind == "names":
            values[field] = (*values.get(field, ()), value)
        elif kind in ("bytes", "count"):
            values[field] = read_text(SCHEMA[field], value)
        else:
            values[field] = Path(value) if kind == "path" else value
    if len(places) != 1 or not places[0]:
        return None
    own = {one.name for one in fields(Request)} & values.keys()
    return Request(
        places[0],
        **{name: values[name] for name in own},
        options=checked({name: value for name, value in values.items() if name not in own}),
    )


def quick(arguments: list[str], shown: bool = False) -> int | None:
    """Run the command line if it is a plain `compile` or `doctor`, for its exit code; None when it was left alone.

    What libraries say is hidden unless it is to be `shown`.
    """
    if _COMPLETION in os.environ:
        return None
    with contextlib.nullcontext() if shown else without_warnings():
        if arguments in (["doctor"], ["doctor", "--json"]):
            from openneutron.cli.shared.diagnosis import print_diagnosis

            with contextlib.nullcontext() if shown else quiet():
                return 0 if print_diagnosis("--json" in arguments) else 1
        request = parse(arguments[1:]) if arguments[:1] == ["compile"] else None
        if request is None:
            return None
        from openneutron.cli.main import DIFFERS

        if _is_light(request):
            import_lean()
            return 0 if run_compile(request) else DIFFERS
        gc.enable()
        with contextlib.nullcontext() if shown else quiet():
            return 0 if run_compile(request) else DIFFERS


def _is_light(request: Request) -> bool:
    """Whether it is a compile that takes the compiler and numpy alone: a LiteRT file as it is, without an HTML page."""
    if not request.source.endswith(".tflite") or request.calibration or request.report or request.sandbox:
        return False
    return request.options.get("converter", "open") == "open" and request.options.get("optimize") != "max"
