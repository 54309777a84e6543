"""Two columns: the result of NXP's converter today, and that of the open schedule.

Example:
    >>> rows(report)[3]
    ('scratch', '40,960 bytes', '9,216 bytes')
"""

from __future__ import annotations

from openneutron.report.cpu_time import on_board
from openneutron.report.energy_text import energy_text
from openneutron.report.facts import on_microcontroller
from openneutron.report.latency import latency
from openneutron.report.model import Report

STOCK = "NXP's converter today (estimated)"
OPEN = "open schedule"
WHICH = (
    "A board sees the column of NXP's converter: NXP's silicon runs only what that makes. "
    "The open schedule runs in the simulator."
)
# The same labels, where both columns use one word.
WHICH_WORD = (
    "stock: what NXP's converter makes today, all that a board runs. open: our schedule, which runs in the simulator."
)


def rows(report: Report) -> list[tuple[str, str, str]]:
    """Return label, stock and open value; nothing if the stock answer is not known, or there is no NPU."""
    stock, totals, whole = on_board(report), report.totals, report.whole
    if not stock.operators_total:
        return []
    from_torch = bool(report.nodes)
    memory = "ExecuTorch's memory and scratch" if from_torch else "kTensorArenaSize"
    ours = f"{whole.memory_bytes:,} bytes" if from_torch else f"{totals.peak_bytes:,} bytes, without an interpreter's"
    if not from_torch and on_microcontroller(report.target) and totals.runtime_bytes:
        ours = f"{totals.runtime_bytes:,} bytes, open runtime"
    npu = latency(totals.milliseconds, totals.milliseconds_low, totals.milliseconds_high)
    return [
        *([("converter", stock.sdk, report.converter_version)] if stock.sdk else []),
        ("operators on the NPU", _operators(stock.operators_converted, stock.operators_total, stock.graphs),
         _operators(totals.operators_converted, totals.operators_total, totals.neutron_graphs)),
        ("kernel calls", f"{stock.kernel_calls:,}", f"{sum(kernel.calls for kernel in report.kernels):,}"),
        ("scratch", f"{stock.scratch_bytes:,} bytes", f"{totals.scratch_bytes:,} bytes"),
        ("memory", f"{stock.arena_bytes:,} bytes, {memory}", ours),
        ("weights", f"{stock.weight_bytes:,} bytes", f"{totals.weight_bytes:,} bytes"),
        ("microcode", f"{stock.microcode_bytes:,} bytes", f"{totals.microcode_bytes:,} bytes"),
        *([("kernels in the file", f"{stock.kernel_bytes:,} bytes", "none")] if stock.kernel_bytes else []),
        ("latency", latency(stock.milliseconds, stock.milliseconds_low, stock.milliseconds_high),
         latency(whole.milliseconds, whole.milliseconds_low, whole.milliseconds_high) if whole.recipe else f"{npu} (NPU)"),
        ("  of it on the CPU", f"{stock.cpu_milliseconds:.3f} ms",
         f"{whole.milliseconds - whole.npu_milliseconds:.3f} ms" if whole.recipe else "not in it"),
        *([("energy", energy_text(report.energy), "not on a board")] if energy_text(report.energy) else []),
        *[("  " + source.partition(": ")[0], source.partition(": ")[2], "") for source in report.energy.sources],
    ]  # fmt: skip


def _operators(converted: int, total: int, graphs: int) -> str:
    return f"{converted} of {total} in {graphs} NeutronGraph{'' if graphs == 1 else 's'}"
