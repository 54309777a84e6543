from __future__ import annotations

import random

import pytest

from openneutron.compiler.l2 import Buffer, Overlap
from openneutron.compiler.plan import solve as module
from openneutron.compiler.plan.solve import solve, solver_version
from openneutron.microcode.table import Region
from tests.compiler.plan.placements import alive_together, least_height


def _buffers(rows: list[tuple[int, int, int]]) -> list[Buffer]:
    return [Buffer(f"b{at}", Region.SCRATCH, size, first=a, last=b) for at, (size, a, b) in enumerate(rows)]


def _stacked(buffers: list[Buffer]) -> tuple[list[int], int]:
    """One above the other: the worst placement that is right."""
    offsets = [sum(b.size for b in buffers[:at]) for at in range(len(buffers))]
    return offsets, sum(b.size for b in buffers)


@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_optimum_of_few_buffers(seed: int) -> None:
    rng = random.Random(seed)
    buffers = _buffers([(16 * rng.randint(1, 9), a := rng.randint(0, 5), a + rng.randint(0, 2)) for _ in range(6)])
    height, offsets = solve(buffers, {}, *_stacked(buffers))
    assert height == least_height(buffers)
    for i, a in enumerate(buffers):
        for j in range(i):
            apart = offsets[i] + a.size <= offsets[j] or offsets[j] + buffers[j].size <= offsets[i]
            assert apart or not alive_together(a, buffers[j])


def test_a_pair_shares_what_its_distance_leaves() -> None:
    buffers = _buffers([(256, 0, 1), (256, 1, 2)])
    pair = Overlap(0, 1, 64, exact=False)
    height, offsets = solve(buffers, {(0, 1): pair, (1, 0): pair}, *_stacked(buffers))
    assert height == 256 + 64 and offsets[1] + 64 <= offsets[0]


def test_what_is_no_better_is_left() -> None:
    buffers = _buffers([(64, 0, 1), (32, 1, 2)])
    assert solve(buffers, {}, [32, 0], 96) == (96, [32, 0])
    assert solve([], {}, [], 0) == (0, [])


def test_too_many_buffers_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LARGEST", 1)
    buffers = _buffers([(64, 0, 0), (64, 1, 1)])
    assert solve(buffers, {}, *_stacked(buffers)) == (128, [0, 64])


def test_its_version_is_three_numbers() -> None:
    major, minor, patch = solver_version()
    assert major >= 9 and minor >= 0 and patch == 0
