"""Writing a file never touches the mask of the process, which other threads create their files with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openneutron.files import write_file


def test_the_mask_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask was set"))
        write_file(tmp_path / "new", b"1")
        (tmp_path / "old").touch(mode=0o600)
        write_file(tmp_path / "old", b"2")
    finally:
        monkeypatch.undo()
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "old")] == [0o640, 0o600]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["new", "old"]
