"""Extract a row's figures from a program's report: for NXP's converter (stock) and for the open schedule.

Example:
    >>> figures(program.report)["stock_arena_bytes"]
    44768
"""

from __future__ import annotations

from typing import Any

from openneutron.report.fits import shortfalls
from openneutron.report.model import Report

# Column → what the page and the table call it. "stock" is NXP's converter today, estimated; "open" is our schedule.
FIGURES = {
    "stock_ms": "stock latency, ms",
    "stock_ms_low": "stock latency, low end",
    "stock_ms_high": "stock latency, high end",
    "stock_arena_bytes": "stock arena, bytes",
    "stock_flash_bytes": "stock flash, bytes",
    "open_ms": "open latency, ms",
    "open_ms_low": "open latency, low end",
    "open_ms_high": "open latency, high end",
    "open_sram_bytes": "open SRAM, bytes",
    "open_flash_bytes": "open flash, bytes",
    "cycles": "open NPU cycles",
    "macs": "MACs",
    "sqnr_db": "SQNR against float, dB",
    "operators": "operators",
    "operators_on_npu": "operators on the NPU",
    "fits": "fits the chip (open)",
}
# Columns in which more is better; in all others less is.
LARGER_IS_BETTER = frozenset(
    {"sqnr_db", "operators_on_npu", "accuracy", "accuracy_low", "accuracy_high", "float_accuracy"}
)


def figures(report: Report) -> dict[str, Any]:
    """Return all `FIGURES`; unknown ones are None (SQNR of a LiteRT file, stock figures of another converter)."""
    totals, whole, stock = report.totals, report.whole, report.stock
    ours = whole if whole.recipe else totals
    known = stock.operators_total > 0
    flash = totals.weight_bytes + totals.microcode_bytes
    return {
        "stock_ms": _round(stock.milliseconds) if known else None,
        "stock_ms_low": _round(stock.milliseconds_low) if known else None,
        "stock_ms_high": _round(stock.milliseconds_high) if known else None,
        "stock_arena_bytes": stock.arena_bytes if known else None,
        "stock_flash_bytes": stock.weight_bytes + stock.microcode_bytes + stock.cpu_constant_bytes if known else None,
        "open_ms": _round(ours.milliseconds),
        "open_ms_low": _round(ours.milliseconds_low),
        "open_ms_high": _round(ours.milliseconds_high),
        "open_sram_bytes": whole.memory_bytes if whole.recipe else totals.peak_bytes,
        "open_flash_bytes": report.files.get("pte", flash),
        "cycles": totals.cycles,
        "macs": totals.macs,
        "sqnr_db": None if report.output_sqnr is None else round(report.output_sqnr, 2),
        "operators": totals.operators_total,
        "operators_on_npu": totals.operators_converted,
        "fits": not shortfalls(report),
    }


def _round(milliseconds: float) -> float:
    """Round to nanoseconds; more digits would come from the arithmetic, not from the estimate."""
    return round(milliseconds, 6)
