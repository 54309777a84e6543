from __future__ import annotations

import os
import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from openneutron.cli import app as application
from openneutron.errors import InternalError
from tests.cli.conftest import Command

HEAVY = ("torch", "executorch", "ortools", "numpy", "ai_edge_litert")


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
import warnings
from importlib import import_module
from openneutron.cli.main import run
assert run(["--help"]) == 0
print([module for module in {HEAVY!r} if module in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", ["compile", "run", "inspect", "disasm", "targets", "ops", "zoo", "doctor"])
def test_every_subcommand_has_help_with_an_example(command: Command, name: str) -> None:
    outcome = command(name, "--help")
    assert outcome.code == 0
    assert f"openneutron {name}" in outcome.out.split("Example", 1)[1]


def test_without_arguments_the_help_is_shown_and_the_code_is_that_of_a_mistake(command: Command) -> None:
    outcome = command()
    assert outcome.code == 2
    assert "Exit codes: 0 done" in outcome.out


def test_the_version_is_printed(command: Command) -> None:
    from openneutron import __version__

    assert command("--version").out == f"openneutron {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conpile"], "No such command 'conpile'"),
        (["compile"], "Missing argument 'source'"),
        (["compile", "a", "b"], "Got unexpected extra argument"),
        (["run", "a", "--seed", "x"], "Invalid value for '--seed'"),
        (["run", "a", "--loud"], "No such option: --loud"),
    ],
    ids=["command", "argument missing", "argument too many", "value", "option"],
)
def test_wrong_usage_is_one_line_that_names_the_help(refused, arguments: list[str], message: str) -> None:
    line = refused(*arguments)
    assert message in line
    assert "--help`)" in line


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(application, "build", lambda only, *, alone: fail)


def test_a_bug_asks_to_be_reported(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError("division\nby zero"))
    outcome = command("targets")
    assert outcome.code == 70
    assert outcome.err.startswith("openneutron: unexpected ZeroDivisionError: division by zero. This is a bug")
    assert outcome.err.count("\n") == 1


def test_a_broken_promise_is_a_bug_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, InternalError("the verifier found an overlap"))
    outcome = command("targets")
    assert outcome.code == 70
    assert "the verifier found an overlap. This is a bug" in outcome.err


def test_debug_lets_the_traceback_through(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError())
    from openneutron.cli.main import run

    with pytest.raises(ZeroDivisionError):
        run(["targets", "--debug"])


def test_an_interrupt_is_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    outcome = command("targets")
    assert (outcome.code, outcome.err) == (130, "openneutron: interrupted\n")


def test_a_closed_pipe_is_no_error_message() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "openneutron", "ops"], stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_what_libraries_say_is_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    main = import_module("openneutron.cli.main")

    def work(arguments: list[str]) -> int:
        warnings.warn("an optional part is missing", stacklevel=1)
        return len(arguments)

    monkeypatch.setattr(main, "_dispatch", work)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert main.run(["targets"]) == 1 and seen == []
        assert main.run(["targets", "-v"]) == 1 and len(seen) == 1
        assert main.run(["--verbose", "targets"]) == 1 and len(seen) == 2


def test_an_onnx_model_asks_for_the_extra_that_brings_all_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = import_module("openneutron.cli.main")

    def work(arguments: list[str]) -> int:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(main, "_dispatch", work)
    assert main.run(["compile", "model.onnx"]) == 2 and main.run(["compile", "cifarnet"]) == 2
    onnx, other = capsys.readouterr().err.splitlines()
    assert onnx == (
        "openneutron: an ONNX model needs the Python package torch, which is not installed. "
        "Hint: pip install 'openneutron[onnx]'"
    )
    assert "'openneutron[executorch]'" in other
