"""Figures of several graphs as those of one program."""

from __future__ import annotations

from openneutron.report.model import Totals
from openneutron.report.totals import delegate_bytes, merge_totals


def test_cycles_add_up_and_of_memory_the_largest_counts() -> None:
    merged = merge_totals(
        [Totals(cycles=1, peak_bytes=10, weight_bytes=3), Totals(cycles=2, peak_bytes=4, weight_bytes=5)]
    )
    assert (merged.cycles, merged.peak_bytes, merged.weight_bytes) == (3, 10, 8)
    assert merge_totals([]) == Totals()


def test_delegates_share_temporary_memory() -> None:
    graphs = [Totals(scratch_bytes=100, prefetch_bytes=20), Totals(scratch_bytes=90)]
    assert delegate_bytes(graphs, (0, 50)) == 140
    assert delegate_bytes(graphs, ()) == 120
    assert delegate_bytes([], ()) == 0
