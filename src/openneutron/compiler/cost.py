"""Prices of kernel calls for the planner: cycles from the machine model in C, computed once per node and number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openneutron.compiler.kernels import abi_of
from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Node
from openneutron.machine.pricing import Machine, call_cycles
from openneutron.machine.targets import Target
from openneutron.microcode.encode import encode_call
from openneutron.microcode.instructions import ABSENT, Call, Operand
from openneutron.microcode.table import ElementType, Region


def home_region(target: Target) -> Region:
    """Return the memory for intermediate values: the TCM of a target that has one, else scratch memory."""
    return Region.TCM if target.tcm_bytes else Region.SCRATCH


def _operand(graph: KernelGraph, node: Node, position: int, local: Region) -> Operand:
    """Return an operand with its geometry; the cost depends on its memory, not on its address."""
    operand = node.operands[position]
    if operand is None:
        return ABSENT
    if isinstance(operand, int):
        value = graph.values[operand]
        n, h, w, c = node.kernel_shape(position, value.shape)
        pixel = c * ITEM_BYTES[value.dtype]
        return Operand(local, 0, value.dtype, 0, h * w * pixel, w * pixel, pixel, value.stored_rows, n, h, w, c)
    size = operand.size
    fetched = Region.TCM if local is Region.TCM else Region.WEIGHTS
    return Operand(fetched, 0, ElementType.UINT8, 0, size, size, size, 1, 1, 1, 1, size)


@dataclass
class CostModel:
    """Cycles of the nodes of one kernel graph on a target, or on a `machine` with other cost constants."""

    graph: KernelGraph
    target: Target
    machine: Machine | None = None
    local: Region = Region.SCRATCH  # where values lie
    stored: Mapping[int, int] = field(default_factory=dict)  # bytes that constants are coded in, by their identity
    _words: dict[int, bytes] = field(default_factory=dict)
    _cycles: dict[tuple[int, int], int] = field(default_factory=dict)
    _striped: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def with_coded_sizes(self, stored: Mapping[int, int]) -> CostModel:
        """Return a model of the same graph whose constants are stored coded, in `stored` bytes each."""
        return CostModel(self.graph, self.target, self.machine, self.local, stored, self._words)

    def cycles(self, node: int, rows: int) -> int:
        """Whole cycles of one call of `node` on `rows` output rows; no rows, no call, no cost."""
        if rows <= 0:
            return 0
        key = (node, rows)
        if key not in self._cycles:
            machine = self.machine or self.target.name
            self._cycles[key] = call_cycles(machine, self.words(node), 0, rows, self._weights(node))
        return self._cycles[key]

    def words(self, node: int) -> bytes:
        """Return a call of `node` as encoded: all inputs of its price except the number of rows."""
        if node not in self._words:
            self._words[node] = self._encode(self.graph.nodes[node])
        return self._words[node]

    def price_stripes(self, node: int, height: int, advance: int, lead: int) -> int:
        """Cycles of `height` rows made in stripes of `advance`, the first cut so that boundaries lie at lead mod advance."""
        first = lead % advance  # all that matters of the lead, which grows without end along a segment
        key = (node, advance, first)
        found = self._striped.get(key)
        if found is None:
            first = min(first, height)
            full, rest = divmod(height - first, advance)
            whole = full * self.cycles(node, advance) if full else 0
            found = self._striped[key] = self.cycles(node, first) + whole + self.cycles(node, rest)
        return found

    def _weights(self, node: int) -> int:
        """Return the coded size of a node's weights; 0 where they are stored plain."""
        if not self.stored:
            return 0
        found = self.graph.nodes[node]
        roles = abi_of(found.kernel).operands
        return self.stored.get(id(found.operands[roles.index("weights")]), 0) if "weights" in roles else 0

    def _encode(self, node: Node) -> bytes:
        kernel = abi_of(node.kernel)
        operands = tuple(_operand(self.graph, node, position, self.local) for position in range(len(node.operands)))
        height = self.graph.values[node.output].shape[1]
        return encode_call(Call(kernel.id, kernel.abi, node.rounding, 0, 0, height, 0, operands, node.params))
