"""Verify: replay L2 on tagged memory and prove that every read finds exactly the bytes it expects.

Every byte of scratch and prefetch memory carries a tag naming the tensor row (or constant) it holds. A call's reads,
derived here from the nodes' row demands and the buffers' addresses with code of this file alone, must find their tags; its
writes replace tags. Early overwrites, short rings, swapped tasks, missing waits and bad offsets all appear as wrong tags,
so rings and lifetimes need no other proof. Runs in every compile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph
from openneutron.compiler.l2 import Buffer, Call, Dma, Loop, Operand, TaskList, Wait
from openneutron.errors import InternalError
from openneutron.microcode.table import Region
from openneutron.targets import Target

Tags = npt.NDArray[np.int64]
_IN_FLIGHT = -2  # bytes that a copy is still writing
_CONSTANT = 1 << 40  # constants are tagged by where they lie in the weights block, above every tensor's tags


def _window(memory: Tags, at: int, count: int, stride: int, size: int) -> Any:
    """`count` runs of `size` bytes, `stride` apart, as a writable 2-D view."""
    last = at + (count - 1) * stride + size
    if at < 0 or last > memory.size:
        raise InternalError(f"bytes {at} to {last} lie outside a region of {memory.size}")
    if stride == size:
        return memory[at : at + count * size].reshape(count, size)
    return np.lib.stride_tricks.as_strided(memory[at:], (count, size), (8 * stride, 8))


@dataclass
class _Replay:
    graph: KernelGraph
    tasks: TaskList
    memory: dict[tuple[Region, int], Tags] = field(default_factory=dict)
    base: dict[int, int] = field(default_factory=dict)  # root value → tag of its first byte
    pending: list[tuple[Dma, Tags]] = field(default_factory=list)

    def region(self, buffer: Buffer) -> Tags:
        return self.memory[(buffer.region, buffer.index)]

    def expected(self, value: int) -> tuple[int, int]:
        """(tag of the value's first byte, bytes per tagged row) of its root."""
        root = self.graph.root(value)
        return self.base[root], max(self.graph.values[root].row_bytes, 1)

    def rows_of(self, operand: Operand, image: int, first: int, last: int) -> list[tuple[int, int]]:
        """(row, address in its region) of rows [first, last) of one image."""
        at = self.tasks.buffers[operand.buffer].offset + operand.offset + image * operand.plane
        return [(y, at + y % operand.ring * operand.pitch) for y in range(first, last)]

    def visit(self, call: Call, value: int, operand: Operand, first: int, last: int, write: bool) -> None:
        """Check (or set) the tags of rows [first, last) of a value behind an operand."""
        buffer = self.tasks.buffers[operand.buffer]
        if buffer.region is Region.WEIGHTS:
            if write:
                raise InternalError(f"node {call.node} writes constants")
            return
        memory = self.region(buffer)
        base, row_bytes = self.expected(value)
        v = self.graph.values[value]
        item = ITEM_BYTES[v.dtype]
        n, h, w, c = v.shape
        alias = v.alias
        # Position of (image, row, pixel) inside the densely stored root: what the tags count.
        offset, plane, pitch, pixel = (
            (alias.offset, alias.plane, alias.pitch, alias.pixel)
            if alias
            else (0, h * w * c * item, w * c * item, c * item)
        )
        # Merged pixels change how a row is divided, not what it holds: a dense row is compared as one run.
        dense = (
            pixel == c * item and operand.pixel == operand.channels * item and operand.width * operand.channels == w * c
        )
        count, size = (1, w * c * item) if dense else (w, c * item)
        if dense and alias is None and operand.pitch == size:
            self._runs(call, value, operand, first, last, write)
            return
        for image in range(n):
            for y, at in self.rows_of(operand, image, first, last):
                held = _window(memory, at, count, operand.pixel if not dense else size, size)
                start = offset + image * plane + y * pitch
                places = start + np.arange(count)[:, None] * pixel + np.arange(size)[None, :]
                tags = base + places // row_bytes
                if write:
                    held[...] = tags
                elif not np.array_equal(held, tags):
                    raise self._wrong(call, value, buffer, y, at)

    def _runs(self, call: Call, value: int, operand: Operand, first: int, last: int, write: bool) -> None:
        """`visit` where rows follow each other without gaps: as many at once as the ring allows, one tag per row."""
        buffer = self.tasks.buffers[operand.buffer]
        memory = self.region(buffer)
        base, _ = self.expected(value)
        batch, height, _, _ = self.graph.values[value].shape
        size = operand.pitch
        for image in range(batch):
            at = buffer.offset + operand.offset + image * operand.plane
            y = first
            while y < last:
                count = min(operand.ring - y % operand.ring, last - y)
                held = _window(memory, at + y % operand.ring * size, count, size, size)
                tags = (base + image * height + np.arange(y, y + count))[:, None]
                if write:
                    held[...] = tags
                elif (bad := (held != tags).any(1)).any():
                    row = y + int(bad.argmax())
                    raise self._wrong(call, value, buffer, row, at + row % operand.ring * size)
                y += count

    def _wrong(self, call: Call, value: int, buffer: Buffer, row: int, at: int) -> InternalError:
        return InternalError(
            f"node {call.node} ({self.graph.nodes[call.node].kernel}) reads row {row} of {self.graph.values[value].name}, "
            f"but byte {at} of {buffer.region.name.lower()} does not hold it"
        )

    def run(self, call: Call, iteration: int) -> None:
        node = self.graph.nodes[call.node]
        output = self.graph.values[node.output]
        height = output.shape[1]
        first = max(call.first_row + iteration * call.row_step, 0)
        last = min(call.first_row + iteration * call.row_step + call.rows, height)
        if first >= last:
            return
        reads: list[tuple[Region, int, int]] = []
        for position, (source, operand) in enumerate(zip(node.operands, call.operands, strict=True)):
            if operand is None:
                continue
            buffer = self.tasks.buffers[operand.buffer]
            if isinstance(source, int) and source != node.output:
                rows = self.graph.values[source].shape[1]
                demand = (node.demand or {}).get(position)
                lo, hi = (0, rows) if demand is None else demand.rows(first, last, rows)
                self.visit(call, source, operand, lo, hi, False)
                if position not in node.in_place and buffer.region in (Region.SCRATCH, Region.TCM):
                    reads += self._span(operand, lo, hi)
            elif isinstance(source, np.ndarray) and buffer.region is not Region.WEIGHTS:
                self.constant(call, source, buffer.offset + operand.offset, self.region(buffer))
        for source, operand in zip(node.operands, call.operands, strict=True):
            if operand is not None and isinstance(source, int) and source == node.output:
                region = self.tasks.buffers[operand.buffer].region
                if region not in (Region.SCRATCH, Region.OUTPUT, Region.TCM):
                    raise InternalError(f"node {call.node} writes to {region.name}")
                if self._clash(reads, operand, first, last):
                    raise InternalError(f"node {call.node} ({node.kernel}) overwrites rows that the same call reads")
                if output.accumulator and first > 0:
                    self.visit(call, source, operand, first - 1, first, False)
                self.visit(call, source, operand, first, last, True)

    def _span(self, operand: Operand, first: int, last: int) -> list[tuple[Region, int, int]]:
        """Byte intervals that rows [first, last) of an operand cover."""
        region = self.tasks.buffers[operand.buffer].region
        size = (operand.width - 1) * operand.pixel + operand.channels * ITEM_BYTES[operand.dtype]
        rows = (row for image in range(operand.batch) for row in self.rows_of(operand, image, first, last))
        return [(region, at, at + size) for _, at in rows]

    def _clash(self, reads: list[tuple[Region, int, int]], operand: Operand, first: int, last: int) -> bool:
        written = self._span(operand, first, last)
        low, high = min(w[1] for w in written), max(w[2] for w in written)
        near = [r for r in reads if r[0] is written[0][0] and r[1] < high and low < r[2]]
        return any(r[1] < w[2] and w[1] < r[2] for r in near for w in written)

    def constant(self, call: Call, data: npt.NDArray[np.uint8], at: int, memory: Tags) -> None:
        """A fetched constant must have arrived, whole, from where its bytes lie in the weights block."""
        held = _window(memory, at, 1, 1, data.size)[0]
        origin = int(held[0]) - _CONSTANT
        arrived = origin >= 0 and np.array_equal(held, held[0] + np.arange(data.size))
        if not arrived or self.tasks.weights[origin : origin + data.size] != data.tobytes():
            raise InternalError(f"node {call.node} reads constants that were not waited for")

    def copy(self, step: Dma) -> None:
        target, source = self.tasks.buffers[step.target], self.tasks.buffers[step.source]
        start = source.offset + step.source_offset
        if source.region is Region.WEIGHTS:
            tags = _CONSTANT + start + np.arange(step.bytes)
        else:
            tags = _window(self.region(source), start, 1, 1, step.bytes)[0].copy()
        _window(self.region(target), target.offset + step.target_offset, 1, 1, step.bytes)[...] = _IN_FLIGHT
        self.pending.append((step, tags))

    def wait(self, channel: int) -> None:
        for step, tags in self.pending:
            if step.channel == channel:
                target = self.tasks.buffers[step.target]
                held = _window(self.region(target), target.offset + step.target_offset, 1, 1, step.bytes)
                if (held != _IN_FLIGHT).any():
                    raise InternalError(f"bytes were written while a copy to buffer {target.name} was under way")
                held[...] = tags
        self.pending = [item for item in self.pending if item[0].channel != channel]


def verify(graph: KernelGraph, tasks: TaskList, target: Target) -> None:
    """Raise an `InternalError` unless every read follows its write, outputs are complete and budgets hold."""
    replay = _Replay(graph, tasks)
    tag = 1
    for index, value in enumerate(graph.values):
        if value.alias is None:
            replay.base[index] = tag
            tag += value.bytes // max(value.row_bytes, 1) + 1
    for b in tasks.buffers:
        if b.region in (Region.INPUT, Region.OUTPUT):
            replay.memory[(b.region, b.index)] = np.zeros(b.size, np.int64)
    replay.memory[(Region.SCRATCH, 0)] = np.zeros(tasks.scratch_bytes, np.int64)
    replay.memory[(Region.PREFETCH, 0)] = np.full(tasks.prefetch_bytes, -1, np.int64)
    replay.memory[(Region.TCM, 0)] = np.full(tasks.tcm_bytes, -1, np.int64)
    for k, index in enumerate(graph.inputs):
        memory = replay.memory[(Region.INPUT, k)]
        base, row_bytes = replay.expected(index)
        memory[...] = base + np.arange(memory.size) // row_bytes
    for task in tasks.tasks:
        if isinstance(task, Loop):
            for iteration in range(task.iterations):
                for step in task.body:
                    _step(replay, step, iteration)
        else:
            _step(replay, task, 0)
    for k, index in enumerate(graph.outputs):
        memory = replay.memory[(Region.OUTPUT, k)]
        base, row_bytes = replay.expected(index)
        if not np.array_equal(memory, base + np.arange(memory.size) // row_bytes):
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
