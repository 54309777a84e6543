"""Verify: replay L2 and prove that every read finds exactly the bytes it expects.

The model of memory stores for every byte which byte of which tensor (or constant) it holds. The reads of a call follow from the
nodes' row demands and the buffers' addresses, by code of this file alone, and must find the expected bytes; writes replace the
old contents. Early overwrites, rings that are too short, swapped tasks, missing waits and wrong offsets all show as wrong
contents, so rings and lifetimes need no other proof. Runs in every compile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.compiler.back.spans import Spans
from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, RowDemand, Value
from openneutron.compiler.l2 import Buffer, Call, Dma, Loop, Operand, TaskList, Wait
from openneutron.errors import InternalError
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align
from openneutron.microcode.table import Region

_IN_FLIGHT = -2  # owner of bytes that a copy is still writing
_CONSTANTS = -1  # owner of bytes that hold a part of the weights block


class _Access(NamedTuple):
    """An operand of a call and its value: the parts that are the same in all iterations."""

    value: int
    operand: Operand
    buffer: Buffer
    root: int
    offset: int  # of the first image, row and pixel inside the densely stored root, and the steps to the next ones
    plane: int
    pitch: int
    pixel: int
    row: int  # bytes
    dense: bool  # a row is one run on both sides; merged pixels change how it is divided, not what it holds
    joined: bool  # rows follow each other on both sides
    rows: int
    demand: RowDemand | None
    overwritten: bool  # whether the call could write over what it reads here, and must not

    @property
    def reach(self) -> tuple[int, int]:
        """Return the byte range that contains all rows of the operand."""
        o = self.operand
        row = (o.width - 1) * o.pixel + o.channels * ITEM_BYTES[o.dtype]
        start = self.buffer.offset + o.offset
        return start, start + (o.batch - 1) * o.plane + (o.ring - 1) * o.pitch + row


def _meet(one: _Access, other: _Access) -> bool:
    (low, high), (start, end) = one.reach, other.reach
    near = one.buffer.region is other.buffer.region and low < end and start < high
    return near and not are_interleaved(one.operand, other.operand)


def are_interleaved(one: Operand, other: Operand) -> bool:
    """Return whether two operands are different channels of the same pixels of a buffer, and so share no byte."""
    same = one.buffer == other.buffer and one.pixel == other.pixel
    if not same or any(distance % one.pixel for distance in (one.pitch, one.plane, other.pitch, other.plane)):
        return False
    size, behind = (each.channels * ITEM_BYTES[each.dtype] for each in (one, other))
    apart = (other.offset - one.offset) % one.pixel
    return size <= apart and apart + behind <= one.pixel


@dataclass
class _Accesses:
    """The bytes that a call reads and writes, except constants in the weights block."""

    reads: list[_Access]
    fetched: list[tuple[npt.NDArray[np.uint8], int, Spans]]
    writes: list[_Access]


@dataclass
class _Replay:
    graph: KernelGraph
    tasks: TaskList
    memory: dict[tuple[Region, int], Spans] = field(default_factory=dict)
    pending: list[tuple[Dma, list[tuple[int, int, int, int]]]] = field(default_factory=list)
    proved: set[tuple[int, int]] = field(default_factory=set)  # constants found in place, by array and address
    known: dict[int, _Accesses] = field(default_factory=dict)  # by the identity of the call

    def region(self, buffer: Buffer) -> Spans:
        return self.memory[(buffer.region, buffer.index)]

    def accesses(self, call: Call) -> _Accesses:
        """What a call reads and writes, with all checked that does not depend on the iteration."""
        node = self.graph.nodes[call.node]
        found = _Accesses([], [], [])
        for position, (source, operand) in enumerate(zip(node.operands, call.operands, strict=True)):
            if operand is None:
                continue
            buffer = self.tasks.buffers[operand.buffer]
            if isinstance(source, int):
                self.check_shape(call, position, self.graph.values[source], operand)
                access = self.access(source, operand, (node.demand or {}).get(position), position not in node.in_place)
                (found.writes if source == node.output else found.reads).append(access)
            elif isinstance(source, np.ndarray):
                at = buffer.offset + operand.offset
                if operand.width * operand.channels * ITEM_BYTES[operand.dtype] != source.size:
                    raise InternalError(
                        f"node {call.node} ({node.kernel}) reads a constant of another size than its own"
                    )
                if buffer.region is Region.WEIGHTS:
                    self.check_constant_in_block(call, source, at)
                else:
                    found.fetched.append((source, at, self.region(buffer)))
        for written in found.writes:
            if written.buffer.region not in (Region.SCRATCH, Region.OUTPUT, Region.TCM, Region.STATE):
                raise InternalError(f"node {call.node} writes to {written.buffer.region.name}")
        for at, read in enumerate(found.reads):
            if read.overwritten and not any(_meet(read, written) for written in found.writes):
                found.reads[at] = read._replace(overwritten=False)
        return found

    def access(self, value: int, operand: Operand, demand: RowDemand | None, apart: bool) -> _Access:
        v = self.graph.values[value]
        item = ITEM_BYTES[v.dtype]
        _, h, w, c = v.shape
        row = w * c * item
        offset, plane, pitch, pixel = (
            (v.alias.offset, v.alias.plane, v.alias.pitch, v.alias.pixel) if v.alias else (0, h * row, row, c * item)
        )
        dense = (
            pixel == c * item and operand.pixel == operand.channels * item and operand.width * operand.channels == w * c
        )
        joined = dense and operand.pitch == pitch == row
        buffer = self.tasks.buffers[operand.buffer]
        overwritten = apart and buffer.region in (Region.SCRATCH, Region.TCM, Region.STATE)
        place = offset, plane, pitch, pixel
        return _Access(
            value, operand, buffer, self.graph.root(value), *place, row, dense, joined, h, demand, overwritten
        )

    def visit(self, call: Call, access: _Access, first: int, last: int, write: bool) -> None:
        """Check (or set) the contents of rows [first, last) of a value, at an operand's addresses."""
        buffer, operand = access.buffer, access.operand
        if buffer.region is Region.WEIGHTS:
            self.check_constant_rows(call, access.value, operand, first, last)
            return
        memory = self.region(buffer)
        root, row, dense, joined = access.root, access.row, access.dense, access.joined
        n, h, w, _ = self.graph.values[access.value].shape
        whole = (first, last) == (0, h) and operand.plane == access.plane == h * row and operand.ring == h
        if n > 1 and joined and whole:
            # Images follow each other without gaps: treat them as more rows of one image.
            operand, n, last = operand._replace(ring=n * h), 1, n * h
        for image in range(n):
            start = buffer.offset + operand.offset + image * operand.plane
            y = first
            while y < last:
                count = min(operand.ring - y % operand.ring, last - y) if joined else 1
                at = start + y % operand.ring * operand.pitch
                position = access.offset + image * access.plane + y * access.pitch
                runs, size = (1, count * row) if dense else (w, row // w)
                for x in range(runs):
                    if write:
                        self.check_not_being_copied(buffer, at + x * operand.pixel, size)
                        memory.put(at + x * operand.pixel, size, root, position + x * access.pixel)
                    elif not memory.holds(at + x * operand.pixel, size, root, position + x * access.pixel):
                        name = self.graph.values[access.value].name
                        raise InternalError(
                            f"node {call.node} ({self.graph.nodes[call.node].kernel}) reads row {y} of {name}, but byte "
                            f"{at + x * operand.pixel} of {buffer.region.name.lower()} does not hold it"
                        )
                y += count

    def run(self, call: Call, iteration: int) -> None:
        node = self.graph.nodes[call.node]
        output = self.graph.values[node.output]
        first = max(call.first_row + iteration * call.row_step, 0)
        last = min(call.first_row + iteration * call.row_step + call.rows, output.shape[1])
        if first >= last:
            return
        found = self.known.get(id(call))
        if found is None:
            found = self.known[id(call)] = self.accesses(call)
        reads: list[tuple[Region, int, int]] = []
        for read in found.reads:
            lo, hi = (0, read.rows) if read.demand is None else read.demand.rows(first, last, read.rows)
            self.visit(call, read, lo, hi, False)
            if read.overwritten:
                reads += self._span(read.operand, lo, hi)
        for data, at, memory in found.fetched:
            self.constant(call, data, at, memory)
        for written in found.writes:
            if reads and self._clash(reads, written.operand, first, last):
                raise InternalError(f"node {call.node} ({node.kernel}) overwrites rows that the same call reads")
            if output.accumulator and first > 0:
                self.visit(call, written, first - 1, first, False)
            self.visit(call, written, first, last, True)

    def _span(self, operand: Operand, first: int, last: int) -> list[tuple[Region, int, int]]:
        """Byte intervals that rows [first, last) of an operand cover."""
        if first >= last:
            return []  # a window that lies in the padding reads nothing
        region = self.tasks.buffers[operand.buffer].region
        size = (operand.width - 1) * operand.pixel + operand.channels * ITEM_BYTES[operand.dtype]
        rows_held = last - first
        if size == operand.pitch and first % operand.ring + rows_held <= operand.ring:
            if operand.plane == rows_held * size:
                rows_held, operand = rows_held * operand.batch, operand._replace(batch=1)
            starts = [self.rows_of(operand, image, first, first + 1)[0] for image in range(operand.batch)]
            return [(region, at, at + rows_held * size) for at in starts]
        rows = (at for image in range(operand.batch) for at in self.rows_of(operand, image, first, last))
        return [(region, at, at + size) for at in rows]

    def _clash(self, reads: list[tuple[Region, int, int]], operand: Operand, first: int, last: int) -> bool:
        written = self._span(operand, first, last)
        low, high = min(w[1] for w in written), max(w[2] for w in written)
        near = [r for r in reads if r[0] is written[0][0] and r[1] < high and low < r[2]]
        return any(r[1] < w[2] and w[1] < r[2] for r in near for w in written)

    def rows_of(self, operand: Operand, image: int, first: int, last: int) -> list[int]:
        """Addresses in their region of rows [first, last) of one image."""
        at = self.tasks.buffers[operand.buffer].offset + operand.offset + image * operand.plane
        return [at + y % operand.ring * operand.pitch for y in range(first, last)]

    def check_shape(self, call: Call, position: int, value: Value, operand: Operand) -> None:
        """Raise unless the operand has the tensor's type and shape, or the shape with merged pixels."""
        shape = self.graph.nodes[call.node].kernel_shape(position, value.shape)
        given = (operand.batch, operand.height, operand.width, operand.channels)
        if given != shape or operand.dtype is not value.dtype or operand.ring > operand.height:
            raise InternalError(f"node {call.node} is told that {value.name} is {operand.dtype.name} {list(given)}")

    def check_constant_in_block(self, call: Call, data: npt.NDArray[Any], at: int) -> None:
        """Raise unless the weights block holds the node's constant at this offset, byte for byte."""
        key = (id(data), at)
        if key in self.proved:
            return
        if at < 0 or self.tasks.weights[at : at + data.nbytes] != data.tobytes():
            kernel = self.graph.nodes[call.node].kernel
            raise InternalError(
                f"node {call.node} ({kernel}) reads byte {at} of the weights, where its constant is not"
            )
        self.proved.add(key)

    def check_constant_rows(self, call: Call, value: int, operand: Operand, first: int, last: int) -> None:
        """Raise unless the rows that are read from the weights block are those of the constant tensor."""
        v = self.graph.values[value]
        data = self.graph.values[self.graph.root(value)].data
        at = self.tasks.buffers[operand.buffer].offset + operand.offset
        n, h, w, c = v.shape
        row = w * c * ITEM_BYTES[v.dtype]
        dense = operand.pixel * operand.width == operand.pitch == row and operand.plane == h * row and operand.ring == h
        if data is None or v.alias is not None or not dense or data.nbytes != n * h * row:
            raise InternalError(f"node {call.node} reads {v.name} out of the weights, where no such tensor lies")
        self.check_constant_in_block(call, data, at)

    def check_not_being_copied(self, buffer: Buffer, at: int, size: int) -> None:
        """Raise if a write would change bytes that an unfinished copy still reads."""
        for step, _ in self.pending:
            source = self.tasks.buffers[step.source]
            start = source.offset + step.source_offset
            same = (source.region, source.index) == (buffer.region, buffer.index)
            if same and start < at + size and at < start + step.bytes:
                raise InternalError(f"byte {max(at, start)} of {buffer.name} is written while a copy reads it")

    def constant(self, call: Call, data: npt.NDArray[np.uint8], at: int, memory: Spans) -> None:
        """Raise unless the copy of a constant to SRAM is complete and came from its place in the weights block."""
        runs = memory.runs(at, data.size)
        start, owner, origin = (runs[0][0], runs[0][2], runs[0][3]) if runs else (-1, 0, 0)
        arrived = start == at and owner == _CONSTANTS and memory.holds(at, data.size, _CONSTANTS, origin)
        if not arrived or self.tasks.weights[origin : origin + data.size] != data.tobytes():
            raise InternalError(f"node {call.node} reads constants that were not waited for")

    def copy(self, step: Dma) -> None:
        target, source = self.tasks.buffers[step.target], self.tasks.buffers[step.source]
        start, to = source.offset + step.source_offset, target.offset + step.target_offset
        if source.region is Region.WEIGHTS:
            arriving = [(to, step.bytes, _CONSTANTS, start)]
        else:
            runs = self.region(source).runs(start, step.bytes)
            arriving = [(to + at - start, length, owner, position) for at, length, owner, position in runs]
        self.check_not_being_copied(target, to, step.bytes)
        self.region(target).put(to, step.bytes, _IN_FLIGHT, 0)
        self.pending.append((step, arriving))

    def wait(self, channel: int) -> None:
        for step, arriving in self.pending:
            if step.channel == channel:
                target = self.tasks.buffers[step.target]
                memory, to = self.region(target), target.offset + step.target_offset
                if not memory.holds(to, step.bytes, _IN_FLIGHT, 0):
                    raise InternalError(f"bytes were written while a copy to buffer {target.name} was under way")
                for at, length, owner, position in arriving:
                    memory.put(at, length, owner, position)
        self.pending = [item for item in self.pending if item[0].channel != channel]


def verify(graph: KernelGraph, tasks: TaskList, target: Target) -> None:
    """Raise an `InternalError` unless every read follows its write, outputs are complete and budgets hold."""
    replay = _Replay(graph, tasks)
    for b in tasks.buffers:
        if b.region in (Region.INPUT, Region.OUTPUT):
            replay.memory[(b.region, b.index)] = Spans(b.size)
    replay.memory[(Region.SCRATCH, 0)] = Spans(tasks.scratch_bytes)
    replay.memory[(Region.PREFETCH, 0)] = Spans(tasks.prefetch_bytes)
    replay.memory[(Region.TCM, 0)] = Spans(tasks.tcm_bytes)
    replay.memory[(Region.STATE, 0)] = Spans(sum(align(len(state.initial)) for state in graph.states))
    for k, index in enumerate(graph.caller_inputs):
        memory = replay.memory[(Region.INPUT, k)]
        memory.put(0, memory.size, graph.root(index), 0)
    for state, offset in zip(graph.states, graph.state_offsets(), strict=True):
        replay.memory[(Region.STATE, 0)].put(offset, len(state.initial), graph.inputs[state.input], 0)
    for task in tasks.tasks:
        if isinstance(task, Loop):
            for iteration in range(task.iterations):
                for step in task.body:
                    _step(replay, step, iteration)
        else:
            _step(replay, task, 0)
    if replay.pending:
        raise InternalError(f"a copy to buffer {tasks.buffers[replay.pending[0][0].target].name} was never waited for")
    for state, offset in zip(graph.states, graph.state_offsets(), strict=True):
        left = graph.inputs[state.input] if state.output < 0 else graph.root(graph.outputs[state.output])
        if not replay.memory[(Region.STATE, 0)].holds(offset, len(state.initial), left, 0):
            raise InternalError(f"state {state.name} is not complete at the end")
    for k, index in enumerate(graph.caller_outputs):
        memory = replay.memory[(Region.OUTPUT, k)]
        if not memory.holds(0, memory.size, graph.root(index), 0):
            raise InternalError(f"output {graph.values[index].name} is not complete at the end")
    for b in tasks.buffers:
        if b.region in (Region.SCRATCH, Region.PREFETCH, Region.TCM) and b.first >= 0 and b.offset % target.alignment:
            raise InternalError(f"buffer {b.name} starts at {b.offset}, not a multiple of {target.alignment}")
    if tasks.tcm_bytes > target.tcm_bytes:
        raise InternalError(f"{tasks.tcm_bytes} bytes exceed the target's TCM of {target.tcm_bytes}")
    if tasks.scratch_bytes + tasks.prefetch_bytes > target.sram_bytes:
        raise InternalError(f"{tasks.scratch_bytes} bytes of scratch exceed the target's {target.sram_bytes}")


def _step(replay: _Replay, step: Call | Dma | Wait, iteration: int) -> None:
    if isinstance(step, Call):
        replay.run(step, iteration)
    elif isinstance(step, Dma):
        replay.copy(step)
    else:
        replay.wait(step.channel)
