"""Totals of several graphs as those of one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openneutron.records import fields
from openneutron.report.model import Totals

# Graphs run one after the other, so of these the largest counts.
LARGEST = frozenset({"peak_bytes", "io_bytes", "scratch_bytes", "prefetch_bytes", "tcm_bytes"})


def merge_totals(parts: Sequence[Totals]) -> Totals:
    """Sums, but of memory the largest.

    Example:
        >>> merge_totals([Totals(cycles=1, peak_bytes=10), Totals(cycles=2, peak_bytes=4)])
        Totals(macs=0, cycles=3, …, peak_bytes=10, …)
    """
    values: dict[str, Any] = {}
    for field in fields(Totals):
        each = [getattr(part, field.name) for part in parts]
        values[field.name] = max(each, default=0) if field.name in LARGEST else sum(each)
    return Totals(**values)


def delegate_bytes(graphs: Sequence[Totals], copies: Sequence[int]) -> int:
    """What delegates take from ExecuTorch's temporary allocator, which is emptied behind each: the most that one needs.

    `copies` are the bytes of tensors that each turns into another order at its border.
    """
    held = [graph.scratch_bytes + graph.prefetch_bytes for graph in graphs]
    turned = [*copies, *[0] * len(held)]
    return max((one + turned[at] for at, one in enumerate(held)), default=0)
