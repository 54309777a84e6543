from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import flash, vela
from tests import tiny


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "convnet.tflite"
    path.write_bytes(tiny.convnet())
    return str(path)


def test_the_table_is_printed(model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vela, "find", lambda named: "")
    flash.main([model])
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if "convnet" in line]
    constants, microcode, both, plain = (int(cell.replace(",", "")) for cell in row[1:5])
    assert constants + microcode == both < plain
    assert 0.5 < float(row[-1].removesuffix("x")) < 1  # cycles against plain constants


def test_every_form_is_measured(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    flash.main(["--schemes", model])
    (row,) = [line.split() for line in capsys.readouterr().out.splitlines() if "convnet" in line]
    padded, packed, entropy, rice, static, chosen = (int(cell.replace(",", "")) for cell in row[1:7])
    assert padded >= packed >= chosen and chosen == min(packed, rice, static) and entropy <= static
