"""Computes how far the output of a segment may overlap an input that dies in it, both stored whole.

Rows are written and released from the same end. If the output starts `distance` bytes below the input, no row is written before
all rows that it covers have been read for the last time: distance = max over calls of (end of the rows written so far - start
of the first row still needed). Element-wise kernels may also work exactly in place.
"""

from __future__ import annotations

from openneutron.compiler.l1 import KernelGraph, RowDemand
from openneutron.compiler.l2 import Overlap
from openneutron.compiler.plan.segments import Segment, Stream
from openneutron.microcode.encode import align


def _windows(graph: KernelGraph, segment: Segment, node: int) -> list[tuple[int, int]]:
    """Return a node's output rows in each iteration, clipped to the tensor, counted from where the segment starts."""
    output = graph.nodes[node].output
    s, height = segment.streams[output], graph.values[output].shape[1]
    found = []
    for i in range(segment.start, segment.start + segment.iterations):
        first = i * s.advance + s.lead
        found.append((max(first, 0), min(first + s.advance, height)))
    return found


def _first_needed(graph: KernelGraph, segment: Segment, value: int) -> list[int]:
    """Return per iteration the lowest row of `value`, or of parts of it, that is read by the sink's call or later.

    The sink comes last in an iteration, so the reads of other nodes in that iteration are over.
    """
    needed = [graph.values[value].shape[1]] * (segment.iterations + 1)
    for n in range(segment.first, segment.last + 1):
        node = graph.nodes[n]
        for position, operand in enumerate(node.operands):
            if not isinstance(operand, int) or operand == node.output or graph.root(operand) != value:
                continue
            height, above = graph.values[operand].shape[1], _rows_above(graph, operand, segment.reverse)
            demand = (node.demand or {}).get(position)
            if demand is not None and segment.reverse:
                rows = graph.values[node.output].shape[1]
                demand = demand.from_bottom(rows, height) if demand.divide == 1 else None
            for i, (first, last) in enumerate(_windows(graph, segment, n), 0 if n == segment.last else -1):
                if first < last and i >= 0:
                    known = demand is not None and above is not None
                    low = above + demand.rows(first, last, height)[0] if known else 0  # type: ignore[operator,union-attr]
                    needed[i] = min(needed[i], low)
    for i in range(segment.iterations - 1, -1, -1):
        needed[i] = min(needed[i], needed[i + 1])
    return needed


def _rows_above(graph: KernelGraph, value: int, reverse: bool) -> int | None:
    """Return the rows of the whole tensor before the first of this part, in the segment's direction; None if rows differ."""
    alias, (_, height, _, _) = graph.values[value].alias, graph.values[value].shape
    if alias is None:
        return 0
    whole = graph.values[alias.root]
    if alias.pitch != whole.row_bytes or whole.shape[0] != 1:
        return None
    above = alias.offset // alias.pitch
    return whole.shape[1] - above - height if reverse else above


class Sharing:
    """Estimates the bytes that the sink of a segment may share with one dying input, while the segment grows backwards.

    It runs for every candidate, so it looks only at the first and last iterations: written and released rows grow linearly
    between them. `overlaps_of` gives the exact distance.
    """

    def __init__(self, graph: KernelGraph, sink: int, advance: int) -> None:
        self._values = graph.values
        rows, row_bytes = graph.values[sink].shape[1], graph.values[sink].row_bytes
        self._size = rows * row_bytes
        stop = -(-rows // advance)
        # Iterations, and the bytes that are written up to their end.
        self._turns = [
            (i, min((i + 1) * advance, rows) * row_bytes) for i in {0, min(1, stop - 1), max(stop - 2, 0), stop - 1}
        ]
        self._readings: dict[int, list[tuple[int, int, RowDemand]]] = {}  # value → (step, lead, rows needed) of each
        self._shared: dict[int, int] = {}  # value → shared bytes, a cache that a new reading clears

    def read(self, value: int, stream: Stream, demand: RowDemand, *, last: bool) -> None:
        """Record that a node reads a value; `last` for the sink, which reads after all other nodes of an iteration."""
        lead = stream.lead if last else stream.lead + stream.advance
        self._readings.setdefault(value, []).append((stream.advance, lead, demand))
        self._shared.pop(value, None)

    def drop(self, value: int) -> None:
        """Forget a value that is made inside the segment."""
        if self._readings.pop(value, None) is not None:
            self._shared.pop(value, None)

    def most(self) -> int:
        """Return the most bytes that can be shared with one input."""
        for value in self._readings:
            if value not in self._shared:
                self._shared[value] = self._with(value)
        return max(self._shared.values(), default=0)

    def _with(self, value: int) -> int:
        height, wide = self._values[value].shape[1], self._values[value].row_bytes
        distance = 0
        for i, written in self._turns:
            needed = height
            for step, lead, demand in self._readings[value]:
                at = i * step + lead
                low = at * demand.stride // demand.divide - demand.before if at > 0 else 0
                if low < needed:
                    needed = low if low > 0 else 0
            if written - needed * wide > distance:
                distance = written - needed * wide
        held = height * wide
        return max(held + self._size - max(align(distance) + held, self._size), 0)


def overlaps_of(graph: KernelGraph, segment: Segment, stored: dict[int, int]) -> list[Overlap]:
    """Return the pairs of input and output buffers of a segment that may share bytes, if the input dies in it."""
    sink = graph.nodes[segment.last].output
    out = graph.values[sink]
    if out.alias is not None or sink not in stored or out.shape[0] != 1 or out.accumulator:
        return []
    last_node = graph.nodes[segment.last]
    windows = _windows(graph, segment, segment.last)
    found: list[Overlap] = []
    reads = {v for n in range(segment.first, segment.last + 1) for v in graph.nodes[n].inputs()}
    for value in sorted(reads - set(segment.streams)):
        v = graph.values[value]
        if v.alias is not None or v.data is not None or value not in stored or v.shape[0] != 1 or v.accumulator:
            continue
        needed = _first_needed(graph, segment, value)
        distance = max(
            (last * out.row_bytes - needed[i] * v.row_bytes for i, (first, last) in enumerate(windows) if first < last),
            default=0,
        )
        in_place = (
            segment.first == segment.last
            and all(graph.root(one) != value or one == value for one in last_node.inputs())
            and v.shape == out.shape
            and v.dtype == out.dtype
            and any(
                last_node.operands[p] == value for p in last_node.in_place if isinstance(last_node.operands[p], int)
            )
        )
        # From the bottom up, rows count from the tensor's end, which may lie before the aligned end of its buffer.
        slack = align(out.bytes) - out.bytes if segment.reverse else 0
        found.append(Overlap(stored[value], stored[sink], align(max(distance, 0) + slack), in_place, segment.reverse))
    return found
