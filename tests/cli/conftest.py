"""The command line in this process: fast, and with the same exit codes as the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from openneutron.cli.main import run
from tests import tiny


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def refused(command: Command) -> Callable[..., str]:
    """The one line on stderr of a command that must fail with exit code 2 and say nothing else."""

    def call(*arguments: object) -> str:
        outcome = command(*arguments)
        assert (outcome.code, outcome.out) == (2, ""), outcome
        assert outcome.err.startswith("openneutron: ") and outcome.err.count("\n") == 1, outcome.err
        return outcome.err

    return call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the tiny LiteRT models in it."""
    monkeypatch.chdir(tmp_path)
    for make in (tiny.convnet, tiny.sandwich, tiny.floats):
        (tmp_path / f"{make.__name__}.tflite").write_bytes(make())
    return tmp_path
