"""Loops are counted by multiplying: what a file says about them costs nothing to read."""

from __future__ import annotations

import pytest

from openneutron.errors import RuntimeFailure
from openneutron.machine.simulator import Simulator
from openneutron.microcode.decode import decode
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
