"""Turns segments into L2 tasks over buffers: one iteration becomes plain calls, several become a loop.

With `fetch_constants` each segment's constants are copied to a prefetch buffer before it runs, or while the segment before it
runs on targets whose copy engine works in parallel to the array.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Node
from openneutron.compiler.l2 import Buffer, Call, Dma, Loop, Operand, Task, TaskList, Wait
from openneutron.compiler.plan.constants import Constants, constants_of
from openneutron.compiler.plan.overlap import overlaps_of
from openneutron.compiler.plan.segments import MAX_BODY, Segment, Stream, Structure, slot_of
from openneutron.machine.targets import Target
from openneutron.microcode.encode import align
from openneutron.microcode.table import ElementType, Region

# Positions in time: each segment has this many, one per call of its body, so that buffers of one call can share.
STEPS = 2 * MAX_BODY
STAGE_CHANNEL = 1  # inputs and outputs, so that waiting for them does not wait for constants
PREFETCH_CHANNEL = 0  # Neutron-C drivers copy on one channel


@dataclass
class _Builder:
    graph: KernelGraph
    target: Target
    constants: Constants
    local: Region  # where intermediates live: scratch memory, or the TCM
    structure: Structure
    out: TaskList = field(default_factory=TaskList)
    stored: dict[int, int] = field(default_factory=dict)  # root value → buffer
    weights_buffer: int = -1
    segment: int = 0
    step: int = 0

    @property
    def fetched(self) -> Region:
        """Where constants are copied to."""
        return Region.TCM if self.local is Region.TCM else Region.PREFETCH

    def add(self, buffer: Buffer) -> int:
        self.out.buffers.append(buffer)
        return len(self.out.buffers) - 1

    def touch(self, buffer: int, *, transient: bool = False) -> int:
        """Extend a buffer's live range over the current segment, or only the current step for `transient` rows."""
        b = self.out.buffers[buffer]
        start = self.segment * STEPS
        first, last = (start + self.step, start + self.step) if transient else (start, start + STEPS - 1)
        b.first = first if b.first < 0 else min(b.first, first)
        b.last = max(b.last, last)
        return buffer

    def add_caller_buffer(self, value: int, region: Region, k: int) -> int:
        """Add the caller's buffer of input or output `k`."""
        v = self.graph.values[value]
        return self.add(Buffer(v.name, region, v.bytes, value, k, offset=0))

    def add_state_buffer(self, value: int, offset: int) -> int:
        """Add the buffer of a state."""
        v = self.graph.values[value]
        return self.add(Buffer(v.name, Region.STATE, v.bytes, value, 0, offset=offset))

    def root_buffer(self, root: int) -> int:
        if root not in self.stored:
            value = self.graph.values[root]
            self.stored[root] = self.add(Buffer(value.name, self.local, align(value.stored_bytes), root))
        return self.touch(self.stored[root])


def _flat(buffer: int, offset: int, size: int) -> Operand:
    return Operand(buffer, offset, size, size, size, 1, 1, 1, 1, size, ElementType.UINT8)


def _dense(b: _Builder, value: int, buffer: int, offset: int, ring: int) -> Operand:
    v = b.graph.values[value]
    n, h, w, c = v.shape
    pixel = c * ITEM_BYTES[v.dtype]
    rows = ring or v.stored_rows
    return Operand(buffer, offset, rows * w * pixel, w * pixel, pixel, rows, n, h, w, c, v.dtype)


def _value_operand(b: _Builder, value: int, rings: dict[int, tuple[int, Stream]]) -> Operand:
    """Return a value as an operand: in its ring, in the weights block, or in the buffer of its root."""
    if value in rings:
        buffer, stream = rings[value]
        return _dense(b, value, b.touch(buffer, transient=stream.transient), 0, stream.ring)
    v = b.graph.values[value]
    root = b.graph.root(value)
    if v.alias is not None and root in rings:
        # A part of each row of a ring.
        buffer, stream = rings[root]
        place, (n, h, w, c) = v.alias, v.shape
        held = b.touch(buffer, transient=stream.transient)
        return Operand(held, place.offset, place.plane, place.pitch, place.pixel, stream.ring, n, h, w, c, v.dtype)
    data = b.graph.values[root].data
    if data is not None:
        buffer, offset = b.weights_buffer, b.constants.offset(data)
    else:
        buffer, offset = b.root_buffer(root), 0
    if v.alias is None:
        return _dense(b, value, buffer, offset, 0)
    a = v.alias
    n, h, w, c = v.shape
    return Operand(buffer, offset + a.offset, a.plane, a.pitch, a.pixel, h, n, h, w, c, v.dtype)


def _merge_pixels(node: Node, position: int, operand: Operand) -> Operand:
    """Return the operand in the shape that the kernel expects, with pixels merged where the node says so."""
    _, _, width, channels = node.kernel_shape(
        position, (operand.batch, operand.height, operand.width, operand.channels)
    )
    if width == operand.width:
        return operand
    return operand._replace(width=width, channels=channels, pixel=channels * ITEM_BYTES[operand.dtype])


@dataclass
class _Prefetch:
    """The copies of a segment's constants to SRAM; `places` maps offsets in the weights block to those in the buffer."""

    buffer: int
    places: dict[int, int]
    copies: list[Dma]


def _prefetch(b: _Builder, nodes: list[Node]) -> _Prefetch | None:
    places: dict[int, int] = {}
    pieces: list[tuple[int, int, int]] = []
    size = 0
    for node in nodes:
        for operand in node.operands:
            if isinstance(operand, np.ndarray) and (source := b.constants.offset(operand)) not in places:
                places[source] = size
                pieces.append((source, size, operand.size))
                size = align(size + operand.size)
    if not pieces:
        return None
    buffer = b.add(Buffer(f"constants of segment {b.segment}", b.fetched, size))
    copies = [Dma(PREFETCH_CHANNEL, b.weights_buffer, s, buffer, t, n) for s, t, n in _merge(pieces)]
    return _Prefetch(buffer, places, copies)


def _merge(pieces: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join copies that continue each other on both sides (alignment gaps included), so that start-up cost is paid once."""
    merged: list[tuple[int, int, int]] = []
    for source, target, size in pieces:
        if merged:
            s, t, n = merged[-1]
            if source == align(s + n) and target - t == source - s:
                merged[-1] = (s, t, source - s + size)
                continue
        merged.append((source, target, size))
    return merged


def _ring(b: _Builder, value: int, stream: Stream) -> int:
    v = b.graph.values[value]
    rows = f"{stream.ring} row{'' if stream.ring == 1 else 's'}"
    return b.add(Buffer(f"{v.name} ({rows})", b.local, align(stream.ring * v.row_bytes), value))


def _calls(b: _Builder, segment: Segment, fetched: _Prefetch | None) -> list[Call]:
    held = {b.structure.joined.get(v, v): s for v, s in segment.streams.items() if s.ring and not s.transient}
    rings = {value: (_ring(b, value, s), s) for value, s in held.items()}
    begun: set[tuple[int, int]] = set()  # transient rows whose ring was made by a value that is overwritten in place
    calls: list[Call] = []
    for step, (n, part) in enumerate(segment.body):
        b.step = step
        output = b.graph.nodes[n].output
        stream = segment.streams[output]
        if stream.transient and (output, part) not in begun:
            slot = slot_of(b.structure, segment.streams, output)
            holder = slot if slot >= 0 else output
            own = segment.streams[holder]
            if own.transient and part in own.fresh:
                rings[holder] = (_ring(b, holder, own), own)
                begun.add((holder, part))
            rings[output] = rings[holder]
        first = segment.first_row(output, b.graph.values[output].shape[1], part)
        moved = 0 if segment.iterations == 1 else -stream.advance if segment.reverse else stream.advance
        calls.append(Call(n, _operands(b, n, rings, fetched), first, stream.rows, moved))
    return calls


def _operands(
    b: _Builder, n: int, rings: dict[int, tuple[int, Stream]], fetched: _Prefetch | None
) -> tuple[Operand | None, ...]:
    """Return the operands of a call of node `n`, in the order of its kernel's interface."""
    node = b.graph.nodes[n]
    found: list[Operand | None] = []
    for position, (role, operand) in enumerate(zip(abi_of(node.kernel).operands, node.operands, strict=True)):
        if role.rstrip("?") == "workspace":
            space = b.add(Buffer(f"workspace of node {n}", b.local, align(node.workspace)))
            found.append(_flat(b.touch(space, transient=True), 0, node.workspace) if node.workspace else None)
        elif operand is None:
            found.append(None)
        elif isinstance(operand, int):
            found.append(_merge_pixels(node, position, _value_operand(b, operand, rings)))
        else:
            found.append(_constant(b, operand, fetched))
    return tuple(found)


def _constant(b: _Builder, data: np.ndarray, fetched: _Prefetch | None) -> Operand:
    """Return a constant as an operand: in the weights block, or in its segment's prefetch buffer."""
    source = b.constants.offset(data)
    if fetched is None:
        return _flat(b.weights_buffer, source, data.size)
    return _flat(b.touch(fetched.buffer), fetched.places[source], data.size)


@dataclass
class _Group:
    """A segment's tasks, and the copies of constants that must complete before them."""

    body: list[Task]
    fetched: _Prefetch | None


def _group(b: _Builder, at: int, segment: Segment, *, fetch_constants: bool) -> _Group:
    b.segment, b.step = at, 0
    fetched = _prefetch(b, b.graph.nodes[segment.first : segment.last + 1]) if fetch_constants else None
    if fetched is not None:
        if b.target.cost.dma_overlaps and at > 0:
            b.segment = at - 1  # copied while the segment before runs
        b.touch(fetched.buffer)
        b.segment = at
    calls = _calls(b, segment, fetched)
    return _Group([Loop(segment.iterations, tuple(calls))] if segment.iterations > 1 else [*calls], fetched)


def _in_order(groups: list[_Group], *, ahead: bool) -> list[Task]:
    """Return all tasks in order; with `ahead` a group's copies start before the tasks of the group in front of it."""
    tasks: list[Task] = []
    for at, group in enumerate(groups):
        if group.fetched is not None:
            if not ahead or at == 0:
                tasks += group.fetched.copies
            tasks.append(Wait(PREFETCH_CHANNEL))
        following = groups[at + 1].fetched if ahead and at + 1 < len(groups) else None
        if following is not None:
            tasks += following.copies
        tasks += group.body
    return tasks


def _stage_in(b: _Builder, inputs: list[int], ends: list[int]) -> list[Task]:
    """Return the copies of the caller's inputs into the TCM; inputs that nothing reads are not copied."""
    b.segment = 0
    used = [(value, end) for value, end in zip(inputs, ends, strict=True) if value in b.stored]
    copies: list[Task] = [
        Dma(STAGE_CHANNEL, end, 0, b.touch(b.stored[value]), 0, b.graph.values[value].bytes) for value, end in used
    ]
    return [*copies, Wait(STAGE_CHANNEL)] if copies else []


def _stage_out(b: _Builder, roots: list[int], starts: list[int]) -> list[Task]:
    """Return the copies of results from the TCM to the caller's outputs."""
    copies: list[Task] = [
        Dma(STAGE_CHANNEL, b.touch(b.stored[root]), 0, start, 0, b.graph.values[root].bytes)
        for root, start in zip(roots, starts, strict=True)
    ]
    return [*copies, Wait(STAGE_CHANNEL)]


def schedule(
    graph: KernelGraph,
    segments: list[Segment],
    target: Target,
    *,
    fetch_constants: bool = False,
    constants: Constants | None = None,
    tcm: bool = False,
    structure: Structure | None = None,
    overlapping: bool = True,
) -> TaskList:
    """Return the tasks and buffers of the whole graph; `allocate` sets the offsets later.

    Without `overlapping` no output may share bytes with an input.
    """
    local = Region.TCM if tcm else Region.SCRATCH
    b = _Builder(graph, target, constants or constants_of(graph), local, structure or Structure.of(graph))
    b.weights_buffer = b.add(Buffer("weights", Region.WEIGHTS, 0, offset=0))
    ends = [b.add_caller_buffer(value, Region.INPUT, k) for k, value in enumerate(graph.caller_inputs)]
    starts = [b.add_caller_buffer(graph.root(value), Region.OUTPUT, k) for k, value in enumerate(graph.caller_outputs)]
    for state, offset in zip(graph.states, graph.state_offsets(), strict=True):
        ends.append(b.add_state_buffer(graph.inputs[state.input], offset))
        if state.output >= 0:
            starts.append(b.add_state_buffer(graph.root(graph.outputs[state.output]), offset))
    if not tcm:
        b.stored.update(dict(zip(graph.inputs, ends, strict=True)))
        b.stored.update(zip(map(graph.root, graph.outputs), starts, strict=True))
    groups = [_group(b, at, segment, fetch_constants=fetch_constants) for at, segment in enumerate(segments)]
    if tcm:
        b.out.tasks += _stage_in(b, graph.inputs, ends)
    b.out.tasks += _in_order(groups, ahead=target.cost.dma_overlaps)
    if tcm:
        b.segment = len(segments)  # after all segments, so that no result is overwritten before it is copied out
        results = [graph.root(value) for value in graph.outputs]
        kept = [graph.inputs[state.input] for state in graph.states if state.output < 0]
        updated = [value for value in kept if value in b.stored]  # a state that no task reads stays unchanged
        starts += [ends[graph.inputs.index(value)] for value in updated]
        b.out.tasks += _stage_out(b, [*results, *updated], starts)
    # All live ranges are known now: a pair may share bytes only if the input dies in the segment that makes the output.
    b.out.overlaps = [
        o
        for segment in (segments if overlapping else ())
        for o in overlaps_of(graph, segment, b.stored)
        if b.out.buffers[o.dying].last // STEPS == b.out.buffers[o.born].first // STEPS
    ]
    b.out.weights = b.constants.block
    b.out.buffers[b.weights_buffer].size = len(b.constants.block)
    return b.out
