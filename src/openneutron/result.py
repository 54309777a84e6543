"""The result of a conversion, the same for all converters."""

from __future__ import annotations

from dataclasses import dataclass, field

from openneutron.report.model import Report


@dataclass(frozen=True)
class Result:
    """A converted LiteRT model with its report, log and dumps.

    `kernel_selections` has one selection for each NeutronGraph, `kernel_selection_code` is the one for all of them.
    """

    model: bytes
    report: Report
    log: str = ""
    kernel_selection_code: str = ""
    kernel_selections: tuple[str, ...] = ()
    intermediates: dict[str, str] = field(default_factory=dict)
