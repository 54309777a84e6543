"""The table of goals of the board's answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import board


def test_every_goal_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert board.main([]) == 0
    goals, _, left_out = capsys.readouterr().out.partition("\n\n")
    lines = goals.splitlines()
    memory = sum(1 + (one.prefetch_bytes > 0) for one in board.ARENAS)
    memory += 2 * len(board.EXECUTORCH_BYTES)
    assert len(lines) == len(board.HEADERS) + memory + len(board.POINTS) + 2 + len(board.IMX95_AT_MOST)
    assert all(line.startswith("met") for line in lines)
    assert len(left_out.splitlines()) == 1 + len(board.HEADERS) + 1
    said = "of 20 files: scratch equal 20, calls equal 16, weights within 5% 16, microcode within 10% 13"
    assert said in left_out
    page = (Path(__file__).parents[2] / "docs/board.md").read_text("utf-8")
    assert (
        "Of 20 files scratch is then equal for 20, calls for 16, weights are within 5 % for 16, microcode within 10 % for 13."
        in page
    )


def test_a_folder_without_pairs_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "alone_converted_by_nxp.tflite").write_bytes(b"")
    assert list(board.files(tmp_path)) == []
