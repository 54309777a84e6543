"""Lists the calls of a program in the order, and with the rows, in which a run executes them."""

from __future__ import annotations

from collections.abc import Iterator

from openneutron.microcode import abi
from openneutron.microcode.instructions import Call, Dma, Loop, Operand, Program


def output_of(call: Call) -> Operand:
    """Return the operand that a call writes."""
    return call.operands[abi.by_id(call.kernel).operands.index("output")]


def executed_calls(program: Program) -> Iterator[tuple[Call, int, int]]:
    """Yield each executed call with its output rows [first, last); calls clipped to no rows are left out."""
    for step, first, last in steps(program):
        if isinstance(step, Call):
            yield step, first, last


def steps(program: Program) -> Iterator[tuple[Call | Dma, int, int]]:
    """Yield each executed call and copy, as the driver reports them; a copy has rows (0, 0)."""
    for item in program.instructions:
        body = item.body if isinstance(item, Loop) else (item,)
        for iteration in range(item.iterations if isinstance(item, Loop) else 1):
            for step in body:
                if isinstance(step, Dma):
                    yield step, 0, 0
                elif isinstance(step, Call):
                    wanted = step.first_row + iteration * step.row_step
                    first, last = max(wanted, 0), min(wanted + step.rows, output_of(step).height)
                    if first < last:
                        yield step, first, last
