"""Freed memory goes back to the system."""

from __future__ import annotations

from pathlib import Path

from openneutron.memory import trim_heap

BLOCKS, SIZE = 2000, 1 << 16  # each smaller than what glibc gives pages of its own


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_gaps_between_blocks_in_use_are_returned() -> None:
    blocks = [bytearray(b"x" * SIZE) for _ in range(BLOCKS)]
    kept = blocks[::4]
    del blocks
    before = resident()
    trim_heap()
    assert before - resident() > BLOCKS * SIZE // 4 and len(kept) == BLOCKS // 4


def test_a_second_call_does_nothing() -> None:
    trim_heap()
    trim_heap()
