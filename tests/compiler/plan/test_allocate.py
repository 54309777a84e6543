"""Allocation: no two live buffers overlap, and simple cases reach the lower bound."""

from __future__ import annotations

import random

import pytest

from openneutron.compiler.l2 import Buffer, Overlap, TaskList
from openneutron.compiler.plan.allocate import Effort, allocate, lower_bound
from openneutron.microcode.table import Region
from tests.compiler.plan.placements import clash, least_height


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


@pytest.mark.parametrize("seed", range(20))
def test_no_placement_is_below_the_bound_with_overlaps(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [16 * rng.randint(1, 64) for _ in range(30)]
    tasks = _tasks([(size, at, at + rng.randint(1, 2)) for at, size in enumerate(sizes)])
    tasks.overlaps = [
        Overlap(at, at + 1, 16 * rng.randint(0, 80), exact=rng.random() < 0.2, upward=rng.random() < 0.5)
        for at in range(29)
    ]
    assert lower_bound(tasks.buffers, tasks.overlaps) <= lower_bound(tasks.buffers)
    for effort in (Effort.GREEDY, Effort.CLIMB):
        assert allocate(tasks, effort).scratch_bytes >= lower_bound(tasks.buffers, tasks.overlaps)


def test_a_chain_of_overlaps_reaches_the_bound() -> None:
    tasks = _tasks([(256, 0, 1), (128, 1, 2), (512, 2, 3)])
    tasks.overlaps = [Overlap(0, 1, 64, exact=False), Overlap(1, 2, 32, exact=False, upward=True)]
    assert lower_bound(tasks.buffers, tasks.overlaps) == 512  # less than the 640 that the last two take side by side
    assert allocate(tasks).scratch_bytes == 512


def test_nothing_to_place() -> None:
    tasks = allocate(TaskList())
    assert (tasks.scratch_bytes, tasks.prefetch_bytes) == (0, 0)


@pytest.mark.parametrize("seed", range(6))
def test_few_buffers_against_all_placements(seed: int) -> None:
    rng = random.Random(seed)
    tasks = _tasks([(16 * rng.randint(1, 9), a := rng.randint(0, 4), a + rng.randint(0, 2)) for _ in range(6)])
    optimum = least_height(tasks.buffers)
    assert lower_bound(tasks.buffers) <= optimum
    assert optimum <= allocate(tasks, Effort.CLIMB).scratch_bytes <= allocate(tasks, Effort.GREEDY).scratch_bytes
    assert allocate(tasks, Effort.EXACT).scratch_bytes == optimum


@pytest.mark.parametrize("seed", range(8, 16))
def test_pairs_share_no_more_than_their_distance_allows(seed: int) -> None:
    rng = random.Random(seed)
    tasks = _tasks([(16 * rng.randint(1, 32), at, at + rng.randint(1, 3)) for at in range(16)])
    tasks.overlaps = [
        Overlap(at, at + 1, 16 * rng.randint(0, 40), exact=rng.random() < 0.3, upward=rng.random() < 0.5)
        for at in range(15)
    ]
    for effort in Effort:
        allocate(tasks, effort)
        assert not any(clash(tasks.buffers, tasks.overlaps, i, j) for i in range(16) for j in range(i))


def test_regions_are_placed_apart() -> None:
    tasks = _tasks([(64, 0, 1), (32, 0, 1)])
    tasks.buffers[1].region = Region.PREFETCH
    tasks.buffers += [Buffer("unused", Region.SCRATCH, 999), Buffer("x", Region.INPUT, 500, offset=0, first=0, last=1)]
    allocate(tasks)
    assert (tasks.scratch_bytes, tasks.prefetch_bytes, tasks.tcm_bytes) == (64, 32, 0)
    assert tasks.buffers[2].offset == -1, "nothing touches it"
