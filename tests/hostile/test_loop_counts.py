"""Loops are counted by multiplying: what a file says about them costs nothing to read."""

from __future__ import annotations

import pytest

from openneutron.analyze.profile import Code, profile
from openneutron.errors import RuntimeFailure, UnsupportedError
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


@pytest.mark.parametrize("times", [2**22, 2**31])
def test_listings_name_the_loop_and_profiles_refuse_it(times: int) -> None:
    blocks = crafted.blocks(Loop(times, (COPY,)), scratch=16)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    assert program.step_count == times
    assert f"LOOP  {times} times" in disassemble(program) and len(disassemble(program)) < 2000
    code = Code("x", (blocks.microcode, blocks.weights, blocks.kernels), program)
    with pytest.raises(UnsupportedError, match=f"makes {times:,} calls and copies"):
        profile([code], source="x")
