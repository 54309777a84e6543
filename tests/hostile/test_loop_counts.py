"""Loops are counted by multiplying: what a file says about them costs nothing to read."""

from __future__ import annotations

import pytest

from openneutron.analyze import profile as profile_of
from openneutron.analyze.profile import Code
from openneutron.errors import RuntimeFailure
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
from openneutron.microcode.disassemble import disassemble
from openneutron.microcode.instructions import Dma, Loop
from openneutron.microcode.table import Region
from tests.hostile import crafted

COPY = Dma(0, Region.INPUT, 0, Region.SCRATCH, 0, 0, 16)


def test_a_loop_of_two_billion_is_refused_at_once() -> None:
    blocks = crafted.blocks(Loop(2**31, (COPY,)), scratch=16)
    with pytest.raises(RuntimeFailure, match="execute, compute or move too much"):
        Simulator(blocks.microcode, blocks.weights, blocks.kernels)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    assert program.call_count == 0 and program.instructions == (Loop(2**31, (COPY,)),)


def test_calls_of_a_long_loop_are_a_product() -> None:
    blocks = crafted.blocks(Loop(2**22, (COPY, COPY)), scratch=16)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        assert simulator.info.calls == 0


def code_of(times: int) -> Code:
    blocks = crafted.blocks(Loop(times, (COPY,)), scratch=16)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    return Code("x", (blocks.microcode, blocks.weights, blocks.kernels), program)


@pytest.mark.parametrize("times", [2**22, 2**31])
def test_listings_name_the_loop(times: int) -> None:
    program = code_of(times).program
    assert program.step_count == times
    assert f"LOOP  {times} times" in disassemble(program) and len(disassemble(program)) < 2000


def test_a_profile_of_many_events_has_their_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    every = profile_of.profile([code_of(2**10)], source="x")
    monkeypatch.setattr(profile_of, "MOST_EVENTS", 2**10 - 1)
    sums = profile_of.profile([code_of(2**10)], source="x")
    assert sums.totals == every.totals
    (one,) = sums.events
    assert len(every.events) == 2**10
    assert (one.start, one.end, one.rows) == (every.events[0].start, every.events[-1].end, 16 * 2**10)
    assert "graph 0 makes 1,024 calls and copies" in sums.notes[-1]


@pytest.mark.full
def test_a_profile_of_a_loop_of_four_million_ends() -> None:
    found = profile_of.profile([code_of(2**22)], source="x")
    assert found.events[0].rows == 16 * 2**22


def test_a_profile_of_a_loop_of_two_billion_is_refused() -> None:
    with pytest.raises(RuntimeFailure, match="execute, compute or move too much"):
        profile_of.profile([code_of(2**31)], source="x")
