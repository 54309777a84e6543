"""Stock answers of several partitions as one."""

from __future__ import annotations

import pytest

from openneutron.board.merge import merge_stocks
from openneutron.report.model import Stock, Whole


def test_sums_time_of_partitions_takes_the_most_memory_and_what_is_around_them() -> None:
    parts = [
        Stock(
            operators_total=3,
            scratch_bytes=100,
            milliseconds=1.0,
            milliseconds_low=0.9,
            milliseconds_high=1.1,
            left=("a",),
        ),
        Stock(
            operators_total=2,
            scratch_bytes=50,
            milliseconds=2.0,
            milliseconds_low=1.8,
            milliseconds_high=2.2,
            left=("a",),
        ),
    ]
    merged = merge_stocks(parts, Whole(cpu_milliseconds=0.5, arena_bytes=1000, graph_copy_bytes=(10, 70)))
    assert merged.scratch_bytes == 100
    assert merged.arena_bytes == 1000 + 50 + 70  # the second takes most, for copies at its border
    assert merged.milliseconds == pytest.approx(3.5)
    assert merged.milliseconds_low < 3.2 and merged.milliseconds_high > 3.8
    assert merged.left == ("a",)


def test_nothing_is_said_where_no_partition_was_planned() -> None:
    assert merge_stocks([], Whole(arena_bytes=100)) == Stock()
