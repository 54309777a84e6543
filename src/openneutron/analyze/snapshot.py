"""Snapshots: the complete output of every L1 node, collected from the rows that each call of a run writes.

Most tensors never exist as a whole: a cascade keeps a few rows in a ring buffer and overwrites them. So rows are copied
right after the call that writes them.

Example:
    >>> run = snapshot(simulator, program, [image])
    >>> run.values[3].shape
    (1, 16, 16, 32)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import InternalError
from openneutron.machine.simulator import DTYPES, Event, Simulator
from openneutron.microcode import abi
from openneutron.microcode.instructions import Call, Operand, Program
from openneutron.microcode.walk import output_of, steps

Array = npt.NDArray[Any]


@dataclass
class Run:
    """One recorded run: outputs, and the value of each node as [batch, height, width, channels]."""

    outputs: list[Array] = field(default_factory=list)
    values: dict[int, Array] = field(default_factory=dict)


def snapshot(simulator: Simulator, program: Program, inputs: Sequence[Array]) -> Run:
    """Run once; `program` is the decoded microcode of the simulator."""
    run = Run()
    planned = steps(program)

    def keep(event: Event) -> None:
        step, first, last = next(planned, (None, 0, 0))
        if not isinstance(step, Call):
            return
        found = (event.kernel, event.tag, event.first_row, event.rows)
        if found != (abi.by_id(step.kernel).name, step.tag, first, last - first):
            raise InternalError(
                f"the run executed {found} where the microcode has node {step.tag} rows {first}-{last - 1}"
            )
        operand = output_of(step)
        if step.tag not in run.values:
            shape = (operand.batch, operand.height, operand.width, operand.channels)
            run.values[step.tag] = np.zeros(shape, DTYPES[operand.dtype])
        memory = simulator.memory(operand.region, operand.index)
        for at, rows in _rows(memory, operand, first, last):
            run.values[step.tag][:, at : at + rows.shape[1]] = rows

    run.outputs = simulator.run_watched(inputs, keep)
    return run


def _rows(memory: Array, operand: Operand, first: int, last: int) -> Iterator[tuple[int, Array]]:
    """Yield rows [first, last) of an operand as views, split where its ring buffer wraps."""
    dtype = np.dtype(DTYPES[operand.dtype])
    strides = (operand.plane, operand.pitch, operand.pixel, dtype.itemsize)
    while first < last:
        place = first % operand.ring
        count = min(last - first, operand.ring - place)
        shape = (operand.batch, count, operand.width, operand.channels)
        yield first, np.ndarray(shape, dtype, memory, operand.offset + place * operand.pitch, strides)
        first += count
