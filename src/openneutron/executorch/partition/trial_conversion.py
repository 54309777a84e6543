"""Trial conversions: where only a conversion shows what becomes of a partition, partitioning makes one.

With NXP's converter this is always so. The open compiler converts whatever its own `check` accepts, if it fits the memory. A
partition that needs more memory than there is when every tensor is stored whole may still fit as a cascade, or in pieces,
and only the compiler finds that out.
"""

from __future__ import annotations

from dataclasses import dataclass

from openneutron.compiler.front.memory_limits import fits_whole, has_too_many_ends
from openneutron.compiler.plan.shortage import Shortage
from openneutron.convert import convert_alone
from openneutron.errors import InternalError
from openneutron.executorch.compile_spec import conversion_options, one_graph_options
from openneutron.executorch.lower.lowering import Lowered
from openneutron.executorch.partition.trial_lowering import TrialLowering
from openneutron.litert.graph import Graph
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.report.model import Report
from openneutron.result import Result
from openneutron.verdict import Reason

_TOO_LARGE = "too_large"  # the compiler's reason for what does not fit the target's memory
_REMOVED = "nxp_removed"  # optimized away: nothing is left of it to run anywhere
_SOURCE = "trial partition"  # in messages about a conversion that is not delivered yet


@dataclass(frozen=True)
class Outcome:
    """What a conversion made of a partition: operators left outside, with reasons, and the graph number of each operator."""

    left: list[tuple[int, Reason]]
    graphs: list[int]

    @property
    def whole(self) -> bool:
        """Whether it became one NeutronGraph."""
        return not self.left and len(set(self.graphs)) <= 1


class TrialConversions:
    """Converts partitions while they are chosen, each at most once.

    Example:
        >>> for position, reason in TrialConversions(options).outcome(trial).left:
        ...     print(trial.lowered.nodes[position], reason.message)
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    def outcome(self, trial: TrialLowering) -> Outcome:
        """What becomes of a partition, which in the end must be one NeutronGraph."""
        if trial.outcome is None:
            trial.outcome = self._outcome(trial)
        return trial.outcome

    def result(self, trial: TrialLowering) -> Result:
        """The conversion of a partition as one graph."""
        if trial.result is None:
            trial.result = convert_alone(_model_of(trial), one_graph_options(self.options, _SOURCE))
        return trial.result

    def shortage(self, trial: TrialLowering) -> Reason:
        """Why a partition that nothing can cut does not fit as one graph."""
        try:
            self.result(trial)
        except Shortage as error:
            return Reason(_TOO_LARGE, error.message, "", error.hint)
        raise InternalError("a partition that was cut fits as one graph")

    def _outcome(self, trial: TrialLowering) -> Outcome:
        graph = _lowered_of(trial).model.main
        one = [0] * len(graph.operators)
        if self.options.converter == "nxp":
            return Outcome(_left_by_nxp(self.result(trial).report), one)
        limited = self.options.fit_bytes is not None and not has_too_many_ends(graph)  # then nothing is cut for memory
        if limited or fits_whole(graph, targets.load(self.options.target)):
            return Outcome([], one)
        result = convert_alone(_model_of(trial), conversion_options(self.options, _SOURCE))
        report = result.report
        left = [
            (op.index, Reason(op.reason_code, op.reason, op.name, op.hint))
            for op in report.operators
            if op.reason_code == _TOO_LARGE
        ]
        outcome = Outcome(left, _numbers_in_order(graph, [op.graph for op in report.operators]))
        if not outcome.whole:
            return outcome
        outside = [(op.index, op.name) for op in report.operators if not op.converted]
        if not outside:
            trial.result = result  # it is one graph already
            return outcome
        # Copies that the converter left outside come in again: a partition is one graph, which may now be too large.
        try:
            self.result(trial)
        except Shortage as error:
            return Outcome([(at, Reason(_TOO_LARGE, error.message, name, error.hint)) for at, name in outside], one)
        return outcome


def _lowered_of(trial: TrialLowering) -> Lowered:
    if trial.lowered is None:
        raise InternalError("a region that does not lower was to be converted")
    return trial.lowered


def _model_of(trial: TrialLowering) -> bytes:
    return write_model(_lowered_of(trial).model)


def _left_by_nxp(report: Report) -> list[tuple[int, Reason]]:
    """The first operator that NXP's converter leaves outside: the others may be converted once that is gone."""
    for op in report.operators:
        if not op.converted and op.reason_code != _REMOVED:
            return [(op.index, Reason(op.reason_code, op.reason, op.name, op.hint))]
    for op in report.operators:
        if op.converted and op.graph > 0:
            message = "NXP's converter made a second graph from here on"
            return [(op.index, Reason("nxp_split", message, op.name, "its log may say why"))]
    return []


def _numbers_in_order(graph: Graph, graphs: list[int]) -> list[int]:
    """The graph number of each operator, at least that of every operator before it; one in no graph gets that of its inputs."""
    made: dict[int, int] = {}
    found: list[int] = []
    for op, number in zip(graph.operators, graphs, strict=True):
        found.append(max([number, 0, *(made.get(tensor, 0) for tensor in op.inputs)]))
        made |= dict.fromkeys(op.outputs, found[-1])
    return found
