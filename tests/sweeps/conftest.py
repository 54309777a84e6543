"""Two tiny LiteRT files in the current folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests import tiny


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for make in (tiny.convnet, tiny.sandwich):
        (tmp_path / f"{make.__name__}.tflite").write_bytes(make())
    (tmp_path / "broken.tflite").write_bytes(b"1234TFL3" + b"9" * 40)
    return tmp_path


@pytest.fixture
def labelled(folder: Path) -> Path:
    """Two files of labelled data for the convolutional network."""
    rng = np.random.default_rng(0)
    for at in range(2):
        x, y = rng.uniform(-1, 1, (12, 8, 8, 3)).astype(np.float32), rng.integers(0, 5, 12)
        np.savez(folder / f"d-{at}.npz", x=x, y=y)
    return folder
