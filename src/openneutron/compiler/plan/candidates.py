"""Candidates: ways to run one or more nodes, each with its scratch bytes and cycles. `tile` chooses among them.

A candidate is one node on whole tensors, one node in stripes, or several nodes streamed together, grown backwards from the last
one. The least memory that the graph can reach is found first, with segments of single rows. A node that fits into it alone, at
hardly any cost, needs no streaming with others, so segments are grown only around the nodes that do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph, Node
from openneutron.compiler.plan.call_order import CallOrder
from openneutron.compiler.plan.equivalence_classes import classify_nodes
from openneutron.compiler.plan.footprint import Footprint
from openneutron.compiler.plan.overlap import Sharing
from openneutron.compiler.plan.segments import MAX_BODY, Stream, Structure, extend, loop_of
from openneutron.microcode.encode import align
from openneutron.microcode.table import Region

MAX_SEGMENT = (
    32  # nodes; longer segments were never chosen on the reference models (docs/compiler.md, Choosing segments)
)
IMPOSSIBLE = 1 << 61  # cycles of an impossible candidate; twice as many still fit INT64
FRINGE = 4  # neighbours of a node that must be streamed: their inputs and outputs may have to be streamed too
ALONE_PRICE = (103, 100)  # cycles that stripes may add to a node that runs alone
DESCENT = (2, 3)  # each step of the search for the least memory aims at this share
HIDING_PIXELS = 24  # with this many per call or more, an 8x8 array hides the loading of weights
# Pixels per call worth trying: below 16 the call overhead dominates, above 512 nothing changes.
STRIPE_PIXELS = (16, HIDING_PIXELS, 32, 64, 128, 256, 512)
STRIPE_ROWS = (1, 2, 4, 8)
SEGMENT_PIXELS = (HIDING_PIXELS, 64, 128, 256)  # segments that hold more rows are as large as whole tensors
SEGMENT_ROWS = (1, 2, 4)


class Candidate(NamedTuple):
    """One way to run nodes [first, last]: scratch bytes while it runs, and cycles."""

    first: int
    last: int
    rows: int  # 0: one node on whole tensors
    pixels: int  # that calls have at least, where an iteration's rows are made in parts; 0: in one call
    memory: int
    cycles: int


# Candidates that end at one node, as columns (first, rows, pixels, memory, cycles): there are hundreds per node.
Columns = npt.NDArray[np.int64]
_Row = tuple[int, int, int, int, int]


def lifetimes(graph: KernelGraph, *, with_ends: bool = False) -> dict[int, tuple[int, int]]:
    """Return the live range (first node, last node) of each scratch root if it is stored whole.

    With `with_ends` also those of the graph's inputs, alive from -1 on, and of its outputs, alive to the end.
    """
    external = set(graph.inputs) | {graph.root(v) for v in graph.outputs}
    spans: dict[int, tuple[int, int]] = {}
    if with_ends:
        spans = dict.fromkeys(graph.inputs, (-1, -1))
    for at, node in enumerate(graph.nodes):
        for value in (node.output, *node.inputs()):
            root = graph.root(value)
            if (root in external and not with_ends) or graph.values[root].data is not None:
                continue
            first, _ = spans.get(root, (at, at))
            spans[root] = (first, at)
    if with_ends:
        spans |= {root: (spans[root][0], len(graph.nodes)) for root in map(graph.root, graph.outputs) if root in spans}
    return spans


def _stripe_heights(height: int, width: int) -> list[int]:
    """Return the rows per call to try: a few small numbers, and those that just fill or just fit whole tiles of pixels."""
    rows = {
        *STRIPE_ROWS,
        *(-(-pixels // width) for pixels in STRIPE_PIXELS),
        *(pixels // width for pixels in STRIPE_PIXELS),
    }
    return sorted(r for r in rows if 0 < r < height)


def _segment_heights(height: int, width: int) -> list[int]:
    """Return the rows per iteration to try for several nodes; fewer, because each costs a walk back over all nodes."""
    rows = {*SEGMENT_ROWS, *(-(-pixels // width) for pixels in SEGMENT_PIXELS)}
    return sorted(r for r in rows if 0 < r < height)


@dataclass
class _Growth:
    """Grows segments of one graph, with everything about the graph computed once."""

    structure: Structure
    costs: CostModel
    spans: dict[int, tuple[int, int]]
    sizes: dict[int, int]
    before: list[int]  # bytes of values made before node n that are still alive at n
    own: list[int]  # bytes of the value that node n makes first, and its workspace
    rows: list[int]  # bytes of a row of each value
    shares: set[int]  # values that may share bytes with another: a dying input with the output of its segment
    fetched: list[int]  # bytes of constants to copy for each node; a segment holds those of all its nodes
    room: int  # bytes for constants that count as free: the constants of the largest node are needed in any schedule
    _grown: dict[tuple[int, ...], tuple[int, list[_Row]]] = field(
        default_factory=dict
    )  # with the last node of the first
    _striped: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)  # by the kind of the node

    @classmethod
    def of(cls, graph: KernelGraph, costs: CostModel, fetch_constants: bool, with_ends: bool = False) -> _Growth:
        spans = lifetimes(graph, with_ends=with_ends)
        # One more place for values that outlive the last node; index -1 puts values from before the first node there too.
        born = [0] * (len(graph.nodes) + 1)
        dies = [0] * (len(graph.nodes) + 1)
        sizes = {root: align(graph.values[root].stored_bytes) for root in spans}
        for root, (first, last) in spans.items():
            born[first] += sizes[root]
            dies[last] += sizes[root]
        before, alive = [], born[-1] - sum(sizes[root] for root, (_, last) in spans.items() if last < 0)
        for n in range(len(graph.nodes)):
            before.append(alive)
            alive += born[n] - dies[n]
        own = [size + align(node.workspace) for size, node in zip(born[:-1], graph.nodes, strict=True)]
        ends = {*graph.inputs, *graph.outputs}
        shares = {
            v for v in spans if graph.values[v].alias is None and not graph.values[v].accumulator and v not in ends
        }
        rows = [value.row_bytes for value in graph.values]
        fetched = [
            sum(align(one.size) for one in node.operands if isinstance(one, np.ndarray)) if fetch_constants else 0
            for node in graph.nodes
        ]
        room = 0 if costs.local is Region.TCM else max(fetched, default=0)
        return cls(Structure.of(graph), costs, spans, sizes, before, own, rows, shares, fetched, room)

    @cached_property
    def _kinds(self) -> list[int]:
        held = list(zip(self.before, self.own, self.fetched, strict=True))
        return classify_nodes(self.structure, self.spans, self.shares, held, self.costs.words)

    def streams(self, node: int) -> bool:
        made = self.structure.graph.nodes[node]
        return made.demand is not None and self.structure.graph.values[made.output].shape[0] == 1

    def alone(self, node: int, stream: bool) -> list[_Row]:
        """Return one node on whole tensors and in stripes; the last node of a loop's body stands for the whole loop."""
        if self.structure.graph.nodes[node].loop >= 0:
            return [self._loop_row(node)]
        shape = self.structure.graph.values[self.structure.graph.nodes[node].output].shape
        found = [
            (
                node,
                0,
                0,
                self.before[node] + self.own[node] + max(self.fetched[node] - self.room, 0),
                self.costs.cycles(node, shape[1]),
            )
        ]
        if stream and self.streams(node):
            found += self._stripes(node)
        return found

    def _stripes(self, node: int) -> list[_Row]:
        """Return one node in stripes. Its output is still stored whole, but may share bytes with a dying input."""
        kind = self._kinds[node]
        if kind not in self._striped:
            self._striped[kind] = self._price_stripes(node)
        return [(node, *row) for row in self._striped[kind]]

    def _price_stripes(self, node: int) -> list[tuple[int, int, int, int]]:
        graph = self.structure.graph
        made = graph.nodes[node]
        _, height, width, _ = graph.values[made.output].shape
        root = graph.root(made.output)
        own = self.sizes[root] if root in self.spans and self.spans[root][0] == node else 0
        whole = self.before[node] + own + align(made.workspace) + max(self.fetched[node] - self.room, 0)
        found = []
        for rows in _stripe_heights(height, width):
            shared = 0
            if made.output in self.shares:
                sharing = Sharing(graph, made.output, rows)
                self._read(sharing, made, Stream(rows, 0, 0), node, node)
                shared = sharing.most()
            found.append((rows, 0, whole - shared, self.costs.price_stripes(node, height, rows, 0)))
        return found

    def _loop_row(self, last: int) -> _Row:
        """Return the whole loop that ends at `last`; other nodes of its body never end a segment."""
        graph = self.structure.graph
        number = graph.nodes[last].loop
        if last + 1 < len(graph.nodes) and graph.nodes[last + 1].loop == number:
            return last, 0, 0, 0, IMPOSSIBLE
        first = next(at for at in range(last, -1, -1) if at == 0 or graph.nodes[at - 1].loop != number)
        segment = loop_of(self.structure, first, last)
        memory = self.before[first] + sum(align(graph.nodes[at].workspace) for at in range(first, last + 1))
        for value, stream in segment.streams.items():
            root = graph.root(value)
            if stream.ring:
                memory += align(self.rows[value])
            elif root in self.spans and self.spans[root][0] >= first:
                memory += self.sizes[root]
        memory += max(sum(self.fetched[first : last + 1]) - self.room, 0)
        cycles = segment.iterations * sum(self.costs.cycles(at, 1) for at in range(first, last + 1))
        return first, 1, 0, memory, cycles

    def grow(self, stop: int, last: int, rows: int, pixels: int = 0, ceiling: int = 1 << 62) -> list[_Row]:
        """Return segments of this stripe height that end at `last`, start at `stop` or later and need less than `ceiling`."""
        key = (rows, pixels, ceiling, *self._kinds[stop : last + 1])
        found = self._grown.get(key)
        if found is None:
            found = self._grown[key] = (last, self._grow(stop, last, rows, pixels, ceiling))
        moved = last - found[0]
        return [(row[0] + moved, *row[1:]) for row in found[1]] if moved else found[1]

    def _grow(self, stop: int, last: int, rows: int, pixels: int, ceiling: int) -> list[_Row]:
        structure = self.structure
        nodes, values = structure.graph.nodes, structure.graph.values
        found: list[_Row] = []
        body = CallOrder() if pixels else None
        held = Footprint(structure, body, begun=last)
        divided = not pixels
        cycles = 0
        streams: dict[int, Stream] = {}
        sink = nodes[last].output
        sharing = Sharing(structure.graph, sink, min(rows, values[sink].shape[1])) if sink in self.shares else None
        ceiling += 0 if sharing is None else self.sizes[sink]  # at most this many bytes are shared
        for first in range(last, stop - 1, -1):
            made = extend(structure, streams, first, last, rows, False, pixels, body)
            if made is None or (body is not None and len(body.calls) > MAX_BODY):
                break
            divided = divided or made.parts > 1
            node = nodes[first]
            height = values[node.output].shape[1]
            streams[node.output] = made
            self._hold(held, streams, first)
            if held.steady >= ceiling:
                break
            cycles += self.costs.price_stripes(first, height, made.advance // made.parts, made.lead)
            if sharing is not None:
                self._read(sharing, node, made, first, last)
            if first > held.begun or not divided or (first == last and made.advance >= height):
                continue  # a writer of a joined value is missing, or an equal candidate exists
            memory = self.before[first] + held.peak(self.room)
            if memory >= ceiling:
                continue
            if sharing is not None:
                memory -= sharing.most()
            found.append((first, rows, pixels, memory, cycles))
        return found

    def _hold(self, held: Footprint, streams: dict[int, Stream], first: int) -> None:
        """Count the bytes that a node adds when it is put in front of a segment."""
        node = self.structure.graph.nodes[first]
        if streams[node.output].ring:
            held.hold_ring(streams, node.output, self.rows)
        else:
            root = self.structure.graph.root(node.output)
            if root in self.spans and self.spans[root][0] == first:
                held.steady += self.sizes[root]
        held.constants += self.fetched[first]
        if node.workspace:
            held.hold_workspace(first, align(node.workspace))

    def _read(self, sharing: Sharing, node: Node, made: Stream, first: int, last: int) -> None:
        """Record which rows of dying values a node reads that is put in front of a segment."""
        sharing.drop(self.structure.joined.get(node.output, node.output))
        assert node.demand is not None
        for position, demand in node.demand.items():
            operand = node.operands[position]
            if not isinstance(operand, int) or operand not in self.shares or operand == node.output:
                continue
            if self.spans[operand][1] <= last:
                sharing.read(operand, made, demand, last=first == last)


def candidates(
    graph: KernelGraph,
    costs: CostModel,
    *,
    stream: bool = True,
    fetch_constants: bool = False,
    room: int | None = None,
) -> list[Columns]:
    """Return every segment to consider, by last node, in a fixed order.

    With `room`, the memory counts inputs and outputs too, each while it is needed, and runs are grown around every node
    that does not fit on its own into that many bytes; `cutting` asks for this.
    """
    growth = _Growth.of(graph, costs, fetch_constants, with_ends=room is not None)
    found = [growth.alone(node, stream) for node in range(len(graph.nodes))]
    if stream and found:
        alone = [
            min(row[3] for row in rows if row[4] * ALONE_PRICE[1] <= rows[0][4] * ALONE_PRICE[0]) for rows in found
        ]
        strides = _last_strided(growth.structure)
        floor = _floor(growth, found, alone, strides) if room is None else room
        for last, stop in enumerate(_reach(alone, floor)):
            if stop < last and growth.streams(last):
                _, height, width, _ = graph.values[graph.nodes[last].output].shape
                most = max(alone[stop : last + 1])  # a segment that needs more than each of its nodes alone is useless
                for rows in _segment_heights(height, width):
                    found[last] += [row for row in growth.grow(stop, last, rows, ceiling=most) if row[0] < last]
                if strides[last] > stop:
                    for rows in sorted({1, min(-(-HIDING_PIXELS // width), height)}):
                        # One row of a wide tensor hides the loading of weights anyway, and tensors upstream are wider still.
                        for pixels in (1, HIDING_PIXELS) if width < HIDING_PIXELS else (1,):
                            found[last] += growth.grow(stop, last, rows, pixels, most)
    return [np.array(rows, np.int64).T.copy() for rows in found]


def _reach(alone: list[int], floor: int) -> list[int]:
    """Return for each last node the first node to grow to: a few nodes before one that does not fit alone, or itself."""
    reach: list[int] = []
    start, latest = 0, -FRINGE - 1  # of the current run: its first node, and the last of its nodes that do not fit
    for node, size in enumerate(alone):
        if size > floor:
            if node - latest > 2 * FRINGE:
                start = max(node - FRINGE, 0)
            latest = node
        reach.append(max(start, node - MAX_SEGMENT + 1) if node - latest <= FRINGE else node)
    return reach


def _last_strided(structure: Structure) -> list[int]:
    """Return for each node the last strided node up to it, which makes fewer rows than it reads; -1 where there is none."""
    found: list[int] = []
    for at, node in enumerate(structure.graph.nodes):
        steps = any(demand.stride > demand.divide for demand in (node.demand or {}).values())
        found.append(at if steps else found[-1] if found else -1)
    return found


def _floor(growth: _Growth, found: list[list[_Row]], alone: list[int], strides: list[int]) -> int:
    """Return the least memory that segments of single rows reach, growing them around more nodes in each step."""
    least = max(alone)
    smallest = [min(row[3] for row in rows) for rows in found]
    grown: dict[int, tuple[int, list[_Row]]] = {}
    while True:
        aim = least * DESCENT[0] // DESCENT[1]
        for last, stop in enumerate(_reach(alone, aim)):
            if stop < grown.get(last, (last, []))[0] and growth.streams(last):
                # Nodes that fill parts of the same rows make them in one call each, so such segments also grow without parts.
                ways = {int(strides[last] > stop), *([0] if growth.structure.joined else [])}
                grown[last] = (stop, [row for part in sorted(ways) for row in growth.grow(stop, last, 1, part, least)])
        peak = [0]
        for last, size in enumerate(smallest):
            peaks = [max(peak[last], size), *(max(peak[row[0]], row[3]) for row in grown.get(last, (0, []))[1])]
            peak.append(min(peaks))
        if peak[-1] > aim or peak[-1] == 0:  # a graph of in-place operators on the caller's buffers needs none
            return min(peak[-1], least)
        least = peak[-1]
