"""The table of goals of the board's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import board


def test_every_goal_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert board.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    memory = sum(1 + (one.prefetch_bytes > 0) for one in board.ARENAS)
    memory += 2 * len(board.EXECUTORCH_BYTES)
    assert len(lines) == len(board.HEADERS) + memory + len(board.POINTS) + 2 + len(board.IMX95_AT_MOST)
    assert all(line.startswith("met") for line in lines)


def test_a_folder_without_pairs_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "alone_converted_by_nxp.tflite").write_bytes(b"")
    assert list(board.files(tmp_path)) == []
