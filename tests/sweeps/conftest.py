"""Two tiny LiteRT files in the current folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for make in (tiny.convnet, tiny.sandwich):
        (tmp_path / f"{make.__name__}.tflite").write_bytes(make())
    (tmp_path / "broken.tflite").write_bytes(b"1234TFL3" + b"9" * 40)
    return tmp_path
