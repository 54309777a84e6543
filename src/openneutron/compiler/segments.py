"""Segments: runs of nodes streamed over line buffers, so that intermediates are a few rows instead of whole tensors.

The equations are those of a uniform pipelined body: with a sink that makes h rows per iteration, a tensor T advances
a = s·a_c rows, leads by l = max(s·l_c + e - s - p) and needs a + l - min(s·l_c - p) rows of ring, over its consumers c with
stride s, extent e and top padding p. Fill and drain are the same body: calls clip their own rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from openneutron.compiler.l1 import KernelGraph, RowDemand
from openneutron.errors import InternalError


class Stream(NamedTuple):
    """How one value moves through a segment: rows per iteration, lead, rows held (0: the whole value is stored).

    A transient ring keeps nothing from one iteration to the next, so its memory is free between its calls.
    """

    advance: int
    lead: int
    ring: int
    transient: bool = False


@dataclass(frozen=True)
class Segment:
    """Nodes [first, last] run as one loop; `streams` is keyed by the values that the nodes write."""

    first: int
    last: int
    start: int  # first iteration, at most 0: the body starts early enough to fill the leads
    iterations: int
    streams: dict[int, Stream]
    reverse: bool = False  # rows run from the bottom up; leads and iterations count rows from the bottom

    def rows(self, value: int, height: int, iteration: int) -> tuple[int, int]:
        """Rows [first, last) of a value made in an iteration from 0 on, not yet clipped to the tensor."""
        s = self.streams[value]
        first = (self.start + iteration) * s.advance + s.lead
        return (height - first - s.advance, height - first) if self.reverse else (first, first + s.advance)


class Use(NamedTuple):
    """One reading of a value: the node, the value it makes, and the rows it needs (None: not by rows)."""

    node: int
    output: int
    demand: RowDemand | None


@dataclass
class Structure:
    """What segment search asks of a kernel graph, computed once."""

    graph: KernelGraph
    uses: dict[int, list[Use]] = field(default_factory=dict)  # value → its readings, in the order of the nodes
    aliased: set[int] = field(default_factory=set)  # values that share storage with others: never rings
    outputs: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, graph: KernelGraph) -> Structure:
        """Structure of a graph."""
        made = cls(graph, outputs=set(graph.outputs))
        for index, value in enumerate(graph.values):
            if value.alias is not None:
                made.aliased |= {index, value.alias.root}
        for at, node in enumerate(graph.nodes):
            for position, operand in enumerate(node.operands):
                if isinstance(operand, int) and operand != node.output:
                    demand = (node.demand or {}).get(position)
                    streams = demand is not None and demand.divide == 1
                    made.uses.setdefault(operand, []).append(Use(at, node.output, demand if streams else None))
        return made


def whole(structure: Structure, node: int) -> Segment:
    """One node on whole tensors."""
    output = structure.graph.nodes[node].output
    height = structure.graph.values[output].shape[1]
    return Segment(node, node, 0, 1, {output: Stream(height, 0, 0)})


def extend(
    structure: Structure, streams: dict[int, Stream], node: int, last: int, rows: int, reverse: bool = False
) -> Stream | None:
    """The stream of `node` put in front of a segment (node, last] with these streams; None where that is illegal."""
    graph = structure.graph
    made = graph.nodes[node]
    value = graph.values[made.output]
    if made.demand is None or value.shape[0] != 1 or (reverse and made.downward):
        return None
    if made.output in structure.aliased:
        root = graph.root(made.output)
        for later in range(node + 1, last + 1):
            if any(v != made.output and graph.root(v) == root for v in graph.nodes[later].inputs()):
                return None  # storage written in the segment is read in it under another name
    if node == last:
        return Stream(min(rows, value.shape[1]), 0, 0)
    return _stream_of(structure, made.output, last, streams, reverse)


def segment_of(structure: Structure, first: int, last: int, rows: int, *, reverse: bool = False) -> Segment:
    """The segment of nodes [first, last], known to be legal."""
    graph = structure.graph
    streams: dict[int, Stream] = {}
    for node in range(last, first - 1, -1):
        made = extend(structure, streams, node, last, rows, reverse)
        if made is None:
            raise InternalError(f"nodes {first} to {last} do not stream at {rows} rows")
        streams[graph.nodes[node].output] = made
    start = min((-s.lead) // s.advance for s in streams.values())
    sink = graph.nodes[last].output
    stop = -(-graph.values[sink].shape[1] // streams[sink].advance)
    return Segment(first, last, start, stop - start, streams, reverse)


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
        if reverse:
            demand = demand.mirrored(graph.values[output].shape[1], graph.values[value].shape[1])
        reader = streams[output]
        stride = demand.stride
        newest = stride * reader.lead - demand.before
        if advance == -1:
            advance, lead, oldest = stride * reader.advance, newest + demand.extent - stride, newest
        elif advance != stride * reader.advance:
            return None  # its readers do not keep step
        else:
            lead, oldest = max(lead, newest + demand.extent - stride), min(oldest, newest)
    height = graph.values[value].shape[1]
    if uses[-1].node > last or value in structure.outputs or value in structure.aliased:
        sink = graph.nodes[last].output
        stop = -(-graph.values[sink].shape[1] // streams[sink].advance)
        return Stream(advance, lead, 0) if stop * advance + lead >= height else None
    needed = advance + lead - oldest
    if reverse:
        # A call makes its rows from the top down all the same: the last may not push out the first it has just made.
        needed = max(needed, advance)
    # An accumulator is read and written in every iteration, so it is never free between its calls.
    transient = needed == advance and not graph.values[value].accumulator
    return Stream(advance, lead, min(height, needed), transient) if needed >= 1 else None
