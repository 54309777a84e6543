"""`--sandbox` of compile and run: the same files and words as without, and the same errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openneutron.cli.main import run
from tests import tiny


def test_compile_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(tiny.convnet())
    more = ["--dump-kernel-selection", "--intermediates", "dumps", "--certificate", "c.json"]
    assert run(["compile", "m.tflite", "-o", "plain.tflite", "--dump-kernel-selection"]) == 0
    plain = capsys.readouterr().out.splitlines()
    assert run(["compile", "m.tflite", "-o", "caged.tflite", *more, "--sandbox"]) == 0
    assert capsys.readouterr().out.splitlines()[:5] == plain[:5]
    assert Path("caged.tflite").read_bytes() == Path("plain.tflite").read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"caged_kernel_selection.c", "c.json", "dumps"} and any(Path("dumps").iterdir())
    assert run(["run", "caged.tflite", "--sandbox", "--check", "m.tflite", "-o", "y.npy"]) == 0
    assert "0 LSB" in capsys.readouterr().out and np.load("y.npy").shape == (1, 5)


def test_without_a_name_for_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(tiny.convnet())
    assert run(["compile", "m.tflite", "--sandbox-limits", "seconds=60"]) == 0
    assert Path("m_neutron.tflite").exists() and "m_neutron.tflite" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "none.tflite", "--sandbox"], "a sandbox is for files"),
        (["compile", "os:getcwd", "--sandbox"], "a sandbox is for files"),
        (["compile", "m.tflite", "-o", "m.tflite", "--sandbox"], "this is an input"),
        (["compile", "m.tflite", "--sandbox-limits", "disk=1"], "the sandbox has no limit 'disk=1'"),
        (["compile", "m.tflite", "--sandbox", "--target", "none"], "none"),
        (["run", "m.tflite", "--sandbox-limits", "memory=100M"], "memory"),
        (["run", "bad.tflite", "--sandbox"], "bad.tflite"),
    ],
)
def test_errors(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(tiny.convnet())
    Path("bad.tflite").write_bytes(tiny.convnet()[:300])
    assert run(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"m.tflite", "bad.tflite"}
