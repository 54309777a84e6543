"""Segments: consecutive nodes streamed over line buffers, so that intermediates are a few rows instead of whole tensors.

The equations are those of a uniform pipelined body: with a sink that makes h rows per iteration, a tensor T advances
a = s·a_c rows, leads by l = max(s·l_c + e - s - p) and needs a + l - min(s·l_c - p) rows of ring, over its consumers c with
stride s, extent e and top padding p. Fill and drain run the same body, because calls clip their rows. Where strides make an
iteration long, nodes may make their rows in several calls (`call_order`): leads are the same, rings are shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from openneutron.compiler.l1 import KernelGraph, RowDemand
from openneutron.compiler.plan.call_order import CallOrder, Reader
from openneutron.errors import InternalError

MAX_BODY = 64  # calls in one iteration: a loop's microcode stays at some kilobytes


class Stream(NamedTuple):
    """How one value streams through a segment: rows per iteration, lead, rows in its ring (0: the whole value is stored).

    A transient ring keeps no rows from one iteration to the next, so its memory is free between its calls. An iteration's
    rows are made in `parts` calls; `fresh` are the parts that find a transient ring empty.
    """

    advance: int
    lead: int
    ring: int
    transient: bool = False
    parts: int = 1
    fresh: tuple[int, ...] = (0,)

    @property
    def rows(self) -> int:
        """Rows per call."""
        return self.advance // self.parts


@dataclass(frozen=True)
class Segment:
    """Nodes [first, last] run as one loop; `streams` is keyed by the values that the nodes write."""

    first: int
    last: int
    start: int  # first iteration, at most 0: the body starts early enough to fill the leads
    iterations: int
    streams: dict[int, Stream]
    body: tuple[tuple[int, int], ...]  # calls of one iteration: (node, which part of its rows)
    reverse: bool = False  # rows run from the bottom up; leads and iterations count rows from the bottom
    pixels: int = 0  # least pixels per call where rows are made in parts; 0: one call makes all rows of an iteration

    def first_row(self, value: int, height: int, part: int) -> int:
        """Return the first row that a part of the first iteration makes, not clipped to the tensor."""
        s = self.streams[value]
        first = self.start * s.advance + s.lead + part * s.rows
        return height - first - s.rows if self.reverse else first


class Use(NamedTuple):
    """One reading of a value: the node, the value it makes, and the rows it needs (None: not by rows)."""

    node: int
    output: int
    demand: RowDemand | None


@dataclass
class Structure:
    """Properties of a kernel graph that the search for segments needs, computed once."""

    graph: KernelGraph
    uses: dict[int, list[Use]] = field(default_factory=dict)  # value → its readings, in the order of the nodes
    aliased: set[int] = field(default_factory=set)  # values that share storage with others: never rings
    outputs: set[int] = field(default_factory=set)
    makers: dict[int, int] = field(default_factory=dict)  # value → the node that makes it
    joined: dict[int, int] = field(default_factory=dict)  # a part of rows, or the value they belong to → that value
    begun: dict[int, int] = field(default_factory=dict)  # such a value → the first node that writes a part of it
    segments: dict[tuple[int, ...], Segment] = field(default_factory=dict)  # cache of `segment_of`

    @classmethod
    def of(cls, graph: KernelGraph) -> Structure:
        """Structure of a graph."""
        made = cls(graph, outputs=set(graph.outputs), makers=graph.producers())
        for index, value in enumerate(graph.values):
            if value.alias is not None:
                made.aliased |= {index, value.alias.root}
        for at, node in enumerate(graph.nodes):
            for position, operand in enumerate(node.operands):
                if isinstance(operand, int) and operand != node.output:
                    demand = (node.demand or {}).get(position)
                    made.uses.setdefault(operand, []).append(Use(at, node.output, demand))
        made._join()
        return made

    def _join(self) -> None:
        """Find values whose rows are written or read in parts, such as a concatenation of channels.

        All parts of a row lie in that row, so one ring can hold all parts, if all are written before any is read.
        """
        graph = self.graph
        parts: dict[int, list[int]] = {}
        for index, value in enumerate(graph.values):
            if value.alias is not None and (index in self.makers or index in self.uses):
                parts.setdefault(value.alias.root, []).append(index)
        for root, found in parts.items():
            family = [root, *found]
            uses = sorted((use for member in family for use in self.uses.get(member, ())), key=lambda use: use.node)
            writers = [self.makers[member] for member in family if member in self.makers]
            if not uses or not writers or uses[0].node < max(writers) or not all(graph.in_row(one) for one in found):
                continue
            ends = {*self.outputs, *graph.inputs}
            looped = any(graph.nodes[at].loop >= 0 for at in (*writers, *(use.node for use in uses)))
            if looped or not ends.isdisjoint(family) or any(graph.values[one].accumulator for one in family):
                continue
            self.aliased -= set(family)
            self.joined |= dict.fromkeys(family, root)
            self.begun[root] = min(writers)
            self.uses |= dict.fromkeys(family, uses)

    def open_before(self, value: int, node: int) -> bool:
        """Return whether a part of the value's rows is written before a node: no segment that starts there can hold them."""
        root = self.joined.get(value)
        return root is not None and self.begun[root] < node

    def maker(self, value: int) -> int:
        """The node that makes a value."""
        return self.makers[value]

    def last_use(self, value: int) -> int:
        """The last node that reads a value which some node reads."""
        return self.uses[value][-1].node


def slot_of(structure: Structure, streams: dict[int, Stream], value: int) -> int:
    """Return the value whose ring may hold a transient value, which is then overwritten in place; -1 where there is none.

    The only reader of the transient value is an element-wise node that makes one row per row and whose other inputs are made
    before. Nothing reads the reader's ring between the two calls, so its row can hold the input first.
    """
    if value in structure.aliased or value in structure.joined:
        return -1  # others read parts of it
    made, uses, graph = streams[value], structure.uses[value], structure.graph
    reader = graph.nodes[uses[0].node]
    if not any(reader.operands[position] == value for position in reader.in_place):
        return -1
    target = streams.get(reader.output)
    if not made.transient or len(uses) > 1 or target is None or not target.ring or reader.output in structure.joined:
        return -1
    in_step = made.advance == target.advance and made.lead == target.lead and made.parts == target.parts
    if not in_step or len(made.fresh) != made.parts or target.ring < made.ring:
        return -1  # readers that skip rows hold fewer of them than are made
    v, out = graph.values[value], graph.values[reader.output]
    latest = max(streams.keys() & set(reader.inputs()), key=structure.maker)
    same = v.shape == out.shape and v.dtype == out.dtype and not out.accumulator
    return reader.output if same and latest == value else -1


def whole(structure: Structure, node: int) -> Segment:
    """Return a segment of one node that computes whole tensors in one call."""
    output = structure.graph.nodes[node].output
    height = structure.graph.values[output].shape[1]
    return Segment(node, node, 0, 1, {output: Stream(height, 0, 0)}, ((node, 0),))


def extend(
    structure: Structure, streams: dict[int, Stream], node: int, last: int, rows: int, reverse: bool = False,
    pixels: int = 0, body: CallOrder | None = None,
) -> Stream | None:  # fmt: skip
    """Return the stream of `node` when it is put in front of the segment (node, last]; None where that is illegal.

    With a `body` the node's calls are inserted into it, each of at least `pixels` pixels.
    """
    graph = structure.graph
    made = graph.nodes[node]
    value = graph.values[made.output]
    if made.demand is None or value.shape[0] != 1 or (reverse and made.downward) or made.loop >= 0:
        return None
    if made.output in structure.aliased:
        root = graph.root(made.output)
        for later in range(node + 1, last + 1):
            if any(v != made.output and graph.root(v) == root for v in graph.nodes[later].inputs()):
                return None  # storage written in the segment is read in it under another name
    if node == last:
        if body is not None:
            body.sink(node)
        return Stream(min(rows, value.shape[1]), 0, 0)
    stream = _stream_of(structure, made.output, last, streams, reverse)
    if stream is None or body is None:
        return stream
    if made.output in structure.joined and stream.ring:
        return None  # several nodes fill the ring, and each would want calls of its own
    return _in_parts(structure, stream, node, last, streams, reverse, pixels, body)


def segment_of(
    structure: Structure, first: int, last: int, rows: int, *, reverse: bool = False, pixels: int = 0
) -> Segment:
    """Return the segment of nodes [first, last]; an `InternalError` where it is not legal."""
    if structure.graph.nodes[first].loop >= 0:
        return loop_of(structure, first, last)
    key = (first, last, rows, reverse, pixels)
    made = structure.segments.get(key) or try_segment(structure, first, last, rows, reverse=reverse, pixels=pixels)
    if made is None:
        raise InternalError(f"nodes {first} to {last} do not stream at {rows} rows")
    structure.segments[key] = made
    return made


def loop_of(structure: Structure, first: int, last: int) -> Segment:
    """Return the body of a loop as a segment: one row of each value per iteration, in the loop's direction.

    A value that only the body reads is held for one row; one that others or the next iteration read is stored whole.
    """
    graph = structure.graph
    stored = {graph.root(value) for value in structure.outputs}
    for value, uses in structure.uses.items():
        if uses[-1].node > last or uses[0].node < first:
            stored.add(graph.root(value))
    streams: dict[int, Stream] = {}
    for at in range(first, last + 1):
        output = graph.nodes[at].output
        whole = graph.values[output].alias is not None or output in stored
        streams[output] = Stream(1, 0, 0) if whole else Stream(1, 0, 1, transient=True)
    steps = graph.values[graph.nodes[first].output].shape[1]
    body = tuple((at, 0) for at in range(first, last + 1))
    return Segment(first, last, 0, steps, streams, body, reverse=graph.nodes[first].upward)


def try_segment(
    structure: Structure, first: int, last: int, rows: int, *, reverse: bool = False, pixels: int = 0
) -> Segment | None:
    """Return the segment of nodes [first, last] with this stripe height, or None where it is not legal."""
    graph = structure.graph
    if any(node.loop >= 0 for node in graph.nodes[first : last + 1]):
        return None  # a loop runs as `loop_of` says
    streams: dict[int, Stream] = {}
    body = CallOrder() if pixels else None
    for node in range(last, first - 1, -1):
        made = extend(structure, streams, node, last, rows, reverse, pixels, body)
        if made is None or (body is not None and len(body.calls) > MAX_BODY):
            return None
        streams[graph.nodes[node].output] = made
    if any(stream.ring and structure.open_before(value, first) for value, stream in streams.items()):
        return None
    start = min((-s.lead) // s.advance for s in streams.values())
    sink = graph.nodes[last].output
    stop = -(-graph.values[sink].shape[1] // streams[sink].advance)
    calls = tuple(body.calls) if body is not None else tuple((node, 0) for node in range(first, last + 1))
    return Segment(first, last, start, stop - start, streams, calls, reverse, pixels)


def _stream_of(structure: Structure, value: int, last: int, streams: dict[int, Stream], reverse: bool) -> Stream | None:
    graph = structure.graph
    uses = structure.uses.get(value)
    if uses is None or uses[0].node > last:
        return None  # only the last node may be a sink
    advance, lead, oldest = -1, 0, 0
    for node, output, demand in uses:
        if node > last:
            break
        if demand is None:
            return None
        stride, divide, before, extent = demand.stride, demand.divide, demand.before, demand.extent
        reader = streams[output]
        if divide != 1:
            if reverse or reader.advance * stride % divide:
                return None  # an iteration must read whole rows of the enlarged value
            step = reader.advance * stride // divide
            newest = (reader.lead + reader.advance - 1) * stride // divide - before + extent - step
            first = reader.lead * stride // divide - before
        else:
            if reverse:
                before = demand.from_bottom(graph.values[output].shape[1], graph.values[value].shape[1]).before
            step = stride * reader.advance
            first = stride * reader.lead - before
            newest = first + extent - stride
        if advance == -1:
            advance, lead, oldest = step, newest, first
        elif advance != step:
            return None  # its readers advance at different rates
        else:
            lead, oldest = max(lead, newest), min(oldest, first)
    height = graph.values[value].shape[1]
    if uses[-1].node > last or value in structure.outputs or value in structure.aliased:
        sink = graph.nodes[last].output
        stop = -(-graph.values[sink].shape[1] // streams[sink].advance)
        return Stream(advance, lead, 0) if stop * advance + lead >= height else None
    needed = advance + lead - oldest
    if reverse:
        # A call still makes its rows from the top down: its last row must not overwrite its first.
        needed = max(needed, advance)
    # An accumulator is read and written in every iteration, so it is never free between its calls.
    transient = needed == advance and not graph.values[value].accumulator and value not in structure.joined
    return Stream(advance, lead, min(height, needed), transient) if needed >= 1 else None


def _in_parts(
    structure: Structure, stream: Stream, node: int, last: int, streams: dict[int, Stream], reverse: bool,
    pixels: int, body: CallOrder,
) -> Stream:  # fmt: skip
    """Return the stream with an iteration's rows made in several calls of enough pixels, each just before its readers."""
    graph = structure.graph
    value = graph.values[graph.nodes[node].output]
    rows = next(
        count for count in range(1, stream.advance + 1)
        if stream.advance % count == 0 and (count * value.shape[2] >= pixels or count == stream.advance)
    )  # fmt: skip
    readers = []
    for reader, output, demand in structure.uses[graph.nodes[node].output]:
        if reader <= last and demand is not None:
            reading = streams[output]
            if reverse:
                demand = demand.from_bottom(graph.values[output].shape[1], value.shape[1])
            readers.append(Reader(reader, reading.rows, reading.lead, demand))
    advance, lead, held, transient, *_ = stream
    parts = advance // rows
    ring, fresh = body.weave(node, parts, rows, lead, readers)
    if not held:
        return Stream(advance, lead, 0, transient, parts)
    ring = min(value.shape[1], max(ring, rows if reverse else 1))
    return Stream(advance, lead, ring, transient, parts, fresh if transient else (0,))
