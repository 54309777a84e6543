"""The CPU's time by node, with NXP's converter and in the open schedule.

Example:
    >>> rows(report)[0].name, rows(report)[0].open
    ('head.nms', 8.31)
"""

from __future__ import annotations

from typing import NamedTuple

from openneutron.machine import targets
from openneutron.report.model import CpuTime, Report, Stock

ENGINES = {
    "cortex_m": "Cortex-M kernel", "portable": "portable kernel", "litert": "LiteRT kernel", "call": "runtime",
    "copy": "runtime",
}  # fmt: skip
_NAMED = 3  # parts that a sentence names


class Row(NamedTuple):
    """One part of the CPU's time in both columns, in milliseconds; None where a column does not have it.

    `share` is its part of the program's whole time in the column that has one, 0 to 1.
    """

    part: CpuTime
    stock: float | None
    open: float | None
    share: float

    @property
    def name(self) -> str:
        """The name for users."""
        return self.part.layer

    @property
    def runs_in(self) -> str:
        """What runs it."""
        return ENGINES.get(self.part.engine, self.part.engine)


def rows(report: Report) -> list[Row]:
    """Return the parts of the CPU's time, the longest first.

    Of a LiteRT file only NXP's converter has a time of the CPU: the open schedule's time is the NPU's alone.
    """
    board = on_board(report)
    stock, ours = (_by_key(parts) for parts in (board.cpu, report.whole.cpu))
    whole = report.whole.milliseconds if report.whole.recipe else board.milliseconds
    found = []
    for key, part in {**stock, **ours}.items():
        times = [one[key].milliseconds if key in one else None for one in (stock, ours)]
        shared = times[1] if report.whole.recipe else times[0]
        found.append(Row(part, times[0], times[1], (shared or 0.0) / whole if whole else 0.0))
    return sorted(found, key=lambda row: -max(row.stock or 0.0, row.open or 0.0))


def on_board(report: Report) -> Stock:
    """Return the answer for NXP's converter; an empty one for a processor without an NPU, for which that makes nothing."""
    known = report.target in targets.names()
    return Stock() if known and targets.load(report.target).processor else report.stock


def sentence(report: Report) -> str:
    """Return the longest parts of the CPU's time in one line; "" without any.

    Example:
        >>> sentence(report)
        '8.310 ms sigmoid of head.gate, 0.412 ms quantize_per_tensor of input image and 5 more'
    """
    parts = sorted(report.whole.cpu or on_board(report).cpu, key=lambda part: -part.milliseconds)
    named = [f"{part.milliseconds:.3f} ms {describe(part)}" for part in parts[:_NAMED]]
    more = len(parts) - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def describe(part: CpuTime) -> str:
    """Return what a part is: its operator and, where that says more, its module or tensor.

    Example:
        >>> describe(CpuTime("aten_sigmoid_default_3", "aten.sigmoid.default", "portable", 0.1, "head.gate"))
        'sigmoid of head.gate'
    """
    return part.label if part.layer == part.label else f"{part.label} of {part.layer}"


def _by_key(parts: tuple[CpuTime, ...]) -> dict[tuple[str, str, str], CpuTime]:
    return {(part.name, part.operator, part.engine): part for part in parts}
