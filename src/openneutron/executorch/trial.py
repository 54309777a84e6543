"""Trial conversions: with NXP's converter only a conversion tells what it leaves out, so partitioning tries one.

The open converter needs none: it compiles what its own `check` accepts.
"""

from __future__ import annotations

import hashlib

from openneutron.convert import convert
from openneutron.executorch.compile_spec import NeutronOptions
from openneutron.executorch.lower import Lowered
from openneutron.litert.write import write_model
from openneutron.report.model import Report
from openneutron.verdict import Reason

_REMOVED = "nxp_removed"  # optimized away: nothing is left of it to run anywhere


class Trials:
    """Converts partitions while they are being cut; equal models are converted once.

    Example:
        >>> problem = Trials(options).leftover(lowered)
        >>> if problem is not None: position, reason = problem
    """

    def __init__(self, options: NeutronOptions) -> None:
        self.options = options
        self._reports: dict[str, Report] = {}

    def leftover(self, lowered: Lowered) -> tuple[int, Reason] | None:
        """The first operator that stayed outside the one NeutronGraph a partition must become, and why."""
        report = self._convert(write_model(lowered.model))
        for op in report.operators:
            if not op.converted and op.reason_code != _REMOVED:
                return op.index, Reason(op.reason_code, op.reason, op.name, op.hint)
        for op in report.operators:
            if op.converted and op.graph > 0:
                message = "NXP's converter made a second graph from here on"
                return op.index, Reason("nxp_split", message, op.name, "its log may say why")
        return None

    def _convert(self, model: bytes) -> Report:
        key = hashlib.sha256(model).hexdigest()
        if key not in self._reports:
            self._reports[key] = convert(model, self.options.conversion("trial partition")).report
        return self._reports[key]
