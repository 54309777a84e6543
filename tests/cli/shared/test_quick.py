"""The short cut understands exactly what typer understands, and leaves everything else to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from openneutron.cli.app import app
from openneutron.cli.shared.compiling import Request
from openneutron.cli.shared.quick import flags, parse
from tests.cli.conftest import Command


def test_both_know_the_same_options() -> None:
    command = typer.main.get_command(app).commands["compile"]  # type: ignore[attr-defined]
    seen = {}
    for parameter in command.params:
        if parameter.name in ("source", "help"):
            continue
        for name in parameter.opts:
            seen[name] = (parameter.name, bool(getattr(parameter, "is_flag", False)), bool(parameter.multiple))
        assert not parameter.secondary_opts, parameter.name
    ours = {name: (field, kind == "switch", kind == "names") for name, (field, kind) in flags().items()}
    assert ours == seen


@pytest.mark.parametrize(
    ("words", "request_"),
    {
        "a file": (["m.tflite"], Request("m.tflite")),
        "values": (
            ["m.tflite", "-o", "o.tflite", "--target=imx95"],
            Request("m.tflite", Path("o.tflite"), options={"target": "imx95"}),
        ),
        "flags": (
            ["--json", "m.tflite", "--use-profiling"],
            Request("m.tflite", as_json=True, options={"use_profiling": True}),
        ),
        "lists": (
            ["m.tflite", "--not-delegate", "ADD", "--not-delegate", "MUL"],
            Request("m.tflite", options={"operators_not_to_delegate": ("ADD", "MUL")}),
        ),
        "the last of several": (
            ["m.tflite", "--fit", "1K", "--fit", "2K"],
            Request("m.tflite", options={"fit_bytes": 2048}),
        ),
    }.values(),
    ids=["a file", "values", "flags", "lists", "the last of several"],
)
def test_plain_command_lines_are_understood(words: list[str], request_: Request) -> None:
    assert parse(words) == request_


@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["a", "b"], ["m.tflite", "--taget", "x"], ["m.tflite", "--target"], ["m.tflite", "--json=1"],
     ["m.tflite", "-oout.tflite"], ["m.tflite", "--target", "--json"], ["--", "m.tflite"], [""]],
    ids=str,
)  # fmt: skip
def test_everything_else_is_left_to_typer(words: list[str]) -> None:
    assert parse(words) is None


def test_mistakes_are_still_explained(command: Command, folder: Path) -> None:
    outcome = command("compile", "convnet.tflite", "--taget", "imx95")
    assert outcome.code == 2 and "--taget" in outcome.err
    assert "Usage" in command("compile", "--help").out


def test_a_compile_imports_nothing_heavy(folder: Path) -> None:
    script = (
        "import sys; from openneutron.cli.main import run; code = run(['compile', 'convnet.tflite']);"
        "heavy = {'typer', 'rich', 'pydantic', 'torch', 'ortools', 'jinja2', 'logging', 'zipfile', 'dataclasses', 'tomllib'};"
        "heavy &= set(sys.modules);"
        "sys.exit(code or ' '.join(sorted(heavy)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "convnet_neutron.tflite" in done.stdout
