"""Trial conversions: where only a conversion tells what becomes of a partition, partitioning tries one.

That is always so with NXP's converter. The open one compiles what its own `check` accepts, if it fits the memory: a partition
that needs more than there is when every tensor is stored whole may fit as a cascade, or in pieces, which its compiler
finds out.
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.front.misfits import fits_whole, is_crowded
from openneutron.compiler.plan.shortage import Shortage
from openneutron.convert import convert_alone
from openneutron.errors import InternalError
from openneutron.executorch.compile_spec import conversion_options
from openneutron.executorch.deliver.conversion import as_one_graph, remember, tried
from openneutron.executorch.lower.lowering import Lowered
from openneutron.litert.graph import Graph
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.verdict import Reason

_TOO_LARGE = "too_large"  # the compiler's reason for what does not fit the target's memory
_REMOVED = "nxp_removed"  # optimized away: nothing is left of it to run anywhere


@dataclass(frozen=True)
class Outcome:
    """What a conversion made of a partition: operators that stay outside with the reason, and the graph of each operator."""

    left: list[tuple[int, Reason]]
    graphs: list[int]

    @property
    def whole(self) -> bool:
        """Whether it became one NeutronGraph."""
        return not self.left and len(set(self.graphs)) <= 1


class Trials:
    """Converts partitions while they are being cut.

    Example:
        >>> for position, reason in Trials(options).outcome(lowered).left:
        ...     print(lowered.nodes[position], reason.message)
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    def outcome(self, lowered: Lowered) -> Outcome:
        """What becomes of a partition, which in the end must be one NeutronGraph."""
        graph = lowered.model.main
        one = [0] * len(graph.operators)
        if self.options.converter == "nxp":
            return Outcome(self._left_by_nxp(lowered), one)
        limited = self.options.fit_bytes is not None and not is_crowded(graph)  # then nothing is cut for memory
        if limited or fits_whole(graph, targets.load(self.options.target)):
            return Outcome([], one)
        model, options = write_model(lowered.model), conversion_options(self.options, "trial partition")
        result = tried(model, options)
        report = result.report
        left = [
            (op.index, Reason(op.reason_code, op.reason, op.name, op.hint))
            for op in report.operators
            if op.reason_code == _TOO_LARGE
        ]
        outcome = Outcome(left, _in_order(graph, [op.graph for op in report.operators]))
        if not outcome.whole:
            return outcome
        outside = [(op.index, op.name) for op in report.operators if not op.converted]
        if not outside:
            remember(model, as_one_graph(options), result)
            return outcome
        # Copies that the converter left outside come in again: a partition is one graph, which may now be too large.
        try:
            tried(model, as_one_graph(options))
        except Shortage as error:
            return Outcome([(at, Reason(_TOO_LARGE, error.message, name, error.hint)) for at, name in outside], one)
        return outcome

    def shortage(self, lowered: Lowered) -> Reason:
        """Why a partition that nothing can cut does not fit as one graph."""
        options = as_one_graph(conversion_options(self.options, "trial partition"))
        try:
            convert_alone(write_model(lowered.model), options)
        except Shortage as error:
            return Reason(_TOO_LARGE, error.message, "", error.hint)
        raise InternalError("a partition that was cut fits as one graph")

    def _left_by_nxp(self, lowered: Lowered) -> list[tuple[int, Reason]]:
        """The first one: the others may be converted once it is gone."""
        report = tried(write_model(lowered.model), conversion_options(self.options, "trial partition")).report
        for op in report.operators:
            if not op.converted and op.reason_code != _REMOVED:
                return [(op.index, Reason(op.reason_code, op.reason, op.name, op.hint))]
        for op in report.operators:
            if op.converted and op.graph > 0:
                message = "NXP's converter made a second graph from here on"
                return [(op.index, Reason("nxp_split", message, op.name, "its log may say why"))]
        return []


def _in_order(graph: Graph, graphs: list[int]) -> list[int]:
    """The graph of each operator, never before those that make its inputs; one in no graph goes with those."""
    made: dict[int, int] = {}
    found: list[int] = []
    for op, number in zip(graph.operators, graphs, strict=True):
        found.append(max([number, 0, *(made.get(tensor, 0) for tensor in op.inputs)]))
        made |= dict.fromkeys(op.outputs, found[-1])
    return found
