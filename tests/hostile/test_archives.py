"""Code that hides in an archive does not run: not under another name, not unasked, not when its pickle says what it is."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import FormatError, OptionError
from openneutron.executorch.capture.pickles import scan


class Planted:
    """Unpickling it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def archive(path: Path, mark: Path, *, protocol: int = 2, nested: bool = True) -> Path:
    """An exported program whose example inputs are code, in an old format that torch still reads."""
    stream = io.BytesIO()
    if nested:
        torch.save(Planted(mark), stream, pickle_protocol=protocol)
    else:
        stream.write(pickle.dumps(Planted(mark), protocol))
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("version", "8.8")
        made.writestr("serialized_exported_program.json", "{}")
        for name in ("state_dict", "constants", "example_inputs"):
            made.writestr(f"serialized_{name}.pt", stream.getvalue())
    return path


@pytest.mark.parametrize("verb", ["compile", "report", "compare", "fits", "evaluate", "inspect", "run", "profile"])
@pytest.mark.parametrize("suffix", [".tflite", ".onnx", ".pte", ""])
def test_an_archive_under_another_name(
    verb: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "ran"
    file = archive(tmp_path / f"x{suffix}", mark)
    assert run([verb, str(file), *(["--data", "x.npz"] if verb == "evaluate" else [])]) == 2
    assert not mark.exists()
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("verb", ["compile", "report", "compare", "fits", "bisect"])
def test_unasked(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "ran"
    file = archive(tmp_path / "x.pt2", mark)
    assert run([verb, str(file), *(["--target", "imxrt700", "--target", "imx95"] if verb == "compare" else [])]) == 2
    assert "--trust" in capsys.readouterr().err and not mark.exists()


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("nested", [True, False])
def test_scanned_first(protocol: int, nested: bool, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    file = archive(tmp_path / "x.pt2", mark, protocol=max(protocol, 2) if nested else protocol, nested=nested)
    with pytest.raises(FormatError, match="could run any code"):
        on.compile(file, trust=True)
    assert not mark.exists()


def test_not_through_a_budget_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "ran"
    archive(tmp_path / "x.pt2", mark)
    budgets = tmp_path / "openneutron.toml"
    budgets.write_text('[[model]]\nsource = "x.pt2"\n[model.budget]\ncycles = 1\n')
    assert run(["check", str(budgets)]) == 2
    assert "no place to trust" in capsys.readouterr().err and not mark.exists()


def test_trusted(tmp_path: Path) -> None:
    file = tmp_path / "x.pt2"
    torch.export.save(torch.export.export(torch.nn.Conv2d(2, 3, 1), (torch.ones(1, 2, 4, 4),)), file)
    with pytest.raises(OptionError, match="--trust"):
        on.compile(file)
    assert on.compile(file, trust=True).report.totals.neutron_graphs == 1
    with pytest.raises(OptionError, match=r"for \.pt2 files"):
        on.compile(tmp_path / "x.tflite", trust=True)


def test_a_bomb(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zeros", bytes(2**24))
    with pytest.raises(FormatError, match="compressed"):
        scan(stream.getvalue(), where="bomb.pt2")
