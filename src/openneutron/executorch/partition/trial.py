"""Trial conversions: where only a conversion tells what a partition leaves out, partitioning tries one.

That is always so with NXP's converter. The open one compiles what its own `check` accepts, if it fits the memory: a partition
that needs more than there is when every tensor is stored whole may fit as a cascade, which its compiler finds out.
"""

from __future__ import annotations

import hashlib

from openneutron.compiler.front.misfits import fits_whole
from openneutron.convert import convert
from openneutron.executorch.compile_spec import NeutronOptions
from openneutron.executorch.deliver.backend import without_l0_passes
from openneutron.executorch.lower.lowering import Lowered
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.report.model import Report
from openneutron.verdict import Reason

_TOO_LARGE = "too_large"  # the compiler's reason for what does not fit the target's memory
_REMOVED = "nxp_removed"  # optimized away: nothing is left of it to run anywhere


class Trials:
    """Converts partitions while they are being cut; equal models are converted once.

    Example:
        >>> for position, reason in Trials(options).leftovers(lowered):
        ...     print(lowered.nodes[position], reason.message)
    """

    def __init__(self, options: NeutronOptions) -> None:
        self.options = options
        self._reports: dict[str, Report] = {}

    def leftovers(self, lowered: Lowered) -> list[tuple[int, Reason]]:
        """Operators that stay outside the one NeutronGraph a partition must become, and why."""
        if self.options.converter == "nxp":
            return self._left_by_nxp(lowered)
        if fits_whole(lowered.model.main, targets.load(self.options.config)) or self.options.fit_bytes is not None:
            return []
        report = self._convert(write_model(lowered.model))
        return [
            (op.index, Reason(op.reason_code, op.reason, op.name, op.hint))
            for op in report.operators
            if op.reason_code == _TOO_LARGE
        ]

    def _left_by_nxp(self, lowered: Lowered) -> list[tuple[int, Reason]]:
        """The first one: the others may be converted once it is gone."""
        report = self._convert(write_model(lowered.model))
        for op in report.operators:
            if not op.converted and op.reason_code != _REMOVED:
                return [(op.index, Reason(op.reason_code, op.reason, op.name, op.hint))]
        for op in report.operators:
            if op.converted and op.graph > 0:
                message = "NXP's converter made a second graph from here on"
                return [(op.index, Reason("nxp_split", message, op.name, "its log may say why"))]
        return []

    def _convert(self, model: bytes) -> Report:
        key = hashlib.sha256(model).hexdigest()
        if key not in self._reports:
            self._reports[key] = convert(model, without_l0_passes(self.options.conversion("trial partition"))).report
        return self._reports[key]
