"""CPU cost of loops and branches: the operators of their graphs, as often as they run.

A loop with an unknown number of iterations counts one, and is reported; of the branches of an IF the slower one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from openneutron.board.cpu import CpuCosts, cpu_cycles
from openneutron.litert.check_graph import GRAPH_FIELDS
from openneutron.litert.graph import Graph, Model, Operator
from openneutron.litert.passes.control_flow import CONTROL, MOST_DEPTH, NotUnrolled

if TYPE_CHECKING:
    from openneutron.litert.passes.count_trips import Work

Cycles = Counter[str]  # operator → cycles


class CpuWork:
    """Cycles of a model's operators on the CPU; `unknown` are the loops that were counted once."""

    def __init__(self, model: Model, costs: CpuCosts) -> None:
        self.model, self.costs = model, costs
        self.unknown = 0
        self._work: Work | None = None
        self._known: dict[int, Cycles] = {}
        self._depth = 0

    def operator(self, graph: Graph, op: Operator) -> Cycles:
        """Return the cycles of an operator and of all graphs it runs.

        Example:
            >>> CpuWork(model, CORTEX_M).operator(model.main, model.main.operators[0])["FULLY_CONNECTED"]
        """
        found: Cycles = Counter({op.code: cpu_cycles(graph, op, self.costs)})
        if op.code == "WHILE":
            trips = self._trips(graph, op)
            return (
                found
                + _times(self._graph(op, "condSubgraphIndex"), trips + 1)
                + _times(self._graph(op, "bodySubgraphIndex"), trips)
            )
        if op.code == "IF":
            sides = [self._graph(op, field) for field in ("thenSubgraphIndex", "elseSubgraphIndex")]
            return found + max(sides, key=lambda side: side.total())
        return found

    def _graph(self, op: Operator, field: str) -> Cycles:
        number = getattr(op.options, field, 0)
        if not 0 < number < len(self.model.graphs) or self._depth >= MOST_DEPTH:
            return Counter()
        if number not in self._known:
            graph, found = self.model.graphs[number], Cycles()
            self._depth += 1
            for one in graph.operators:
                found.update(self.operator(graph, one))
            self._depth -= 1
            self._known[number] = found
        return self._known[number]

    def _trips(self, graph: Graph, op: Operator) -> int:
        numbers = [getattr(op.options, field, 0) for field in ("condSubgraphIndex", "bodySubgraphIndex")]
        condition, body = (self.model.graphs[one] if 0 < one < len(self.model.graphs) else None for one in numbers)
        given = [graph.tensors[index].data if index >= 0 else None for index in op.inputs]
        from openneutron.litert.passes.count_trips import Work, count_trips

        self._work = self._work or Work()
        try:
            if condition is None or body is None or len(condition.outputs) != 1:
                raise NotUnrolled("its graphs are not those of a loop", "")
            if not len(given) == len(condition.inputs) == len(body.inputs) == len(body.outputs):
                raise NotUnrolled("its graphs are not those of a loop", "")
            return count_trips(condition, body, given, self._work)
        except NotUnrolled:
            self.unknown += 1
            return 1


def _times(cycles: Cycles, count: int) -> Cycles:
    return Counter({code: one * count for code, one in cycles.items()})


def called_bytes(model: Model, operators: Iterable[Operator]) -> int:
    """Return the size of the constants of all graphs that these operators run, each graph counted once."""
    waiting, met = [op for op in operators if op.code in CONTROL], set[int]()
    while waiting:
        op = waiting.pop()
        for options in (op.options, op.options2):
            for field in GRAPH_FIELDS:
                number = getattr(options, field, None)
                if number is not None and 0 < number < len(model.graphs) and number not in met:
                    met.add(number)
                    waiting += model.graphs[number].operators
    return sum(t.nbytes for number in met for t in model.graphs[number].tensors if t.data is not None)
