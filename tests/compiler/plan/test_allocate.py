"""Allocation: no two live buffers overlap, and simple cases reach the lower bound."""

from __future__ import annotations

import random

import pytest

from openneutron.compiler.l2 import Buffer, TaskList
from openneutron.compiler.plan.allocate import allocate
from openneutron.microcode.table import Region


def _tasks(rows: list[tuple[int, int, int]]) -> TaskList:
    return TaskList([Buffer(f"b{i}", Region.SCRATCH, s, first=a, last=b) for i, (s, a, b) in enumerate(rows)])


@pytest.mark.parametrize("seed", range(20))
def test_live_buffers_never_overlap(seed: int) -> None:
    rng = random.Random(seed)
    rows = [(16 * rng.randint(1, 64), a := rng.randint(0, 40), a + rng.randint(0, 9)) for _ in range(80)]
    tasks = allocate(_tasks(rows))
    for i, a in enumerate(tasks.buffers):
        assert a.offset + a.size <= tasks.scratch_bytes
        for b in tasks.buffers[:i]:
            alive = a.first <= b.last and b.first <= a.last
            assert not alive or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
    assert tasks.lower_bound <= tasks.scratch_bytes <= 1.15 * tasks.lower_bound


def test_ping_pong_chain_reaches_the_bound() -> None:
    tasks = allocate(_tasks([(64, 0, 1), (128, 1, 2), (32, 2, 3), (256, 3, 4)]))
    assert tasks.scratch_bytes == tasks.lower_bound == 288


def test_nothing_to_place() -> None:
    tasks = allocate(TaskList())
    assert (tasks.scratch_bytes, tasks.prefetch_bytes) == (0, 0)
