"""Merge the totals of several graphs into those of one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from openneutron.report.model import Totals

# Graphs run one after the other, so of these the largest counts.
LARGEST = frozenset(
    {"peak_bytes", "io_bytes", "scratch_bytes", "prefetch_bytes", "tcm_bytes", "arena_bytes", "stack_bytes"}
)


def merge_totals(parts: Sequence[Totals]) -> Totals:
    """Add up totals, except for memory, where the largest counts.

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
    """Return the size of ExecuTorch's temporary allocator that the delegates need.

    ExecuTorch empties the allocator after each delegate, so this is the largest need of one of them. `copies` are the bytes of
    tensors that each delegate transposes at its border.
    """
    held = [graph.scratch_bytes + graph.prefetch_bytes for graph in graphs]
    turned = [*copies, *[0] * len(held)]
    return max((one + turned[at] for at, one in enumerate(held)), default=0)
