"""Predict: the timeline of a program on its target, priced call by call by the machine model.

The compiler and the simulator walk over queues and waits with separate code, but price calls with the same functions. Their
agreement to the cycle proves the order of calls, copies and waits, not the prices.
"""

from __future__ import annotations

from typing import NamedTuple

from openneutron.compiler.l1 import ITEM_BYTES
from openneutron.machine.pricing import Cost, Machine, call_cost, cycles_of, dma_cost
from openneutron.machine.targets import Target
from openneutron.microcode import abi
from openneutron.microcode.encode import encode_call
from openneutron.microcode.instructions import ABSENT, Call, Dma, Loop, Operand, Program, Step, Wait
from openneutron.microcode.storage.sections import Sizes
from openneutron.microcode.table import Region


class Timed(NamedTuple):
    """One executed call or copy; parts are in 1/1024 cycle as the machine model gives them."""

    node: int
    kernel: str
    lane: str
    first_row: int
    rows: int
    start: int
    end: int
    compute: int
    memory: int
    overhead: int


def _output(call: Call) -> Operand:
    return call.operands[abi.by_id(call.kernel).operands.index("output")]


def stored_weights(call: Call, sizes: Sizes) -> int:
    """Return the coded size of a call's weights; 0 where they are plain.

    Weights that were copied to SRAM are plain, because a copy decodes them.
    """
    roles = abi.by_id(call.kernel).operands
    weights = call.operands[roles.index("weights")] if "weights" in roles else ABSENT
    if weights.region is not Region.WEIGHTS:
        return 0
    count = weights.batch * weights.height * weights.width * weights.channels
    return sizes.coded_bytes(weights.offset, count * ITEM_BYTES[weights.dtype])


def predict(program: Program, target: Target, machine: Machine | None = None) -> tuple[list[Timed], int]:
    """Return every executed call and copy with its start and end, and the total in cycles.

    `machine` has other prices than the target's.
    """
    prices_of = machine or target.name
    events: list[Timed] = []
    array = 0  # when the array (and the CPU that drives it) is free
    engine = 0  # when the copy engine is free
    done: dict[int, int] = {}  # channel → when its copies are complete
    calls: dict[int, tuple[bytes, int, int, str]] = {}  # as encoded, bytes of coded weights, rows of the output, kernel
    prices: dict[tuple[int, int], tuple[Cost, int]] = {}  # (call, rows) → its parts, and its cycles
    sizes = Sizes(program.sections)

    def run(step: Step, iteration: int) -> None:
        nonlocal array, engine
        if isinstance(step, Call):
            if id(step) not in calls:
                kernel = abi.by_id(step.kernel).name
                calls[id(step)] = encode_call(step), stored_weights(step, sizes), _output(step).height, kernel
            words, coded, height, kernel = calls[id(step)]
            wanted = step.first_row + iteration * step.row_step
            first, last = max(wanted, 0), min(wanted + step.rows, height)
            if first >= last:
                return
            key = (id(step), last - first)
            if key not in prices:
                cost = call_cost(prices_of, words, first, last, coded)
                prices[key] = cost, cycles_of(cost)
            cost, cycles = prices[key]
            start, array = array, array + cycles
            events.append(Timed(step.tag, kernel, "array", first, last - first, start, array, *cost))
        elif isinstance(step, Dma):
            constant = step.source_region is Region.WEIGHTS
            cost = dma_cost(prices_of, step.bytes, sizes.coded_bytes(step.source_offset, step.bytes) if constant else 0)
            start = max(engine, array)
            engine = start + cycles_of(cost)
            done[step.channel] = engine
            if not target.cost.dma_overlaps:
                array = engine
            events.append(Timed(step.channel, "copy", "dma", 0, step.bytes, start, engine, *cost))
        elif isinstance(step, Wait):
            array = max(array, done.get(step.channel, 0))

    for item in program.instructions:
        if isinstance(item, Loop):
            for iteration in range(item.iterations):
                for step in item.body:
                    run(step, iteration)
        else:
            run(item, 0)
    return events, max(array, engine)
