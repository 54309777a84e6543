from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openneutron.analyze.snapshot import _rows, snapshot
from openneutron.errors import InternalError
from openneutron.machine.simulator import Simulator
from openneutron.microcode.instructions import Operand
from openneutron.microcode.table import ElementType, Region
from tests import tiny
from tests.analyze.subjects import subject_of


def test_rows_are_read_through_ring_pitch_and_pixel() -> None:
    memory = np.arange(200, dtype=np.uint8)
    operand = Operand(Region.SCRATCH, 0, ElementType.UINT8, 8, 96, 24, 4, 3, 2, 10, 5, 2)
    pieces = dict(_rows(memory, operand, 2, 6))
    assert [(at, rows.shape) for at, rows in pieces.items()] == [(2, (2, 1, 5, 2)), (3, (2, 3, 5, 2))]
    for y in range(2, 6):
        start = 2 if y == 2 else 3
        for n in range(2):
            for x in range(5):
                first = 8 + n * 96 + (y % 3) * 24 + x * 4
                assert pieces[start][n, y - start, x].tolist() == [first, first + 1]


def test_a_run_that_is_not_the_microcode_is_noticed() -> None:
    subject = subject_of(tiny.convnet())
    program = subject.program()
    swapped = dataclasses.replace(program, instructions=program.instructions[::-1])
    zeros = [np.zeros((1, 8, 8, 3), np.int8)]
    with Simulator(subject.microcode, subject.weights, subject.kernels_block) as simulator:
        with pytest.raises(InternalError, match="the run executed"):
            snapshot(simulator, swapped, zeros)
        assert len(snapshot(simulator, program, zeros).values) == 4
