from __future__ import annotations

import pytest

from openneutron.report.html.text import decades, doublings, short, size, ticks


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (12298, "12.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes_have_the_unit_that_keeps_them_short(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (278603, "279 k"), (3e8, "300 M"), (2.5e12, "2,500 G")]
)
def test_counts_keep_three_digits(count: float, text: str) -> None:
    assert short(count) == text


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 9) == [0, 2, 4, 6, 8]
    assert ticks(10.2e6, 12.2e6) == [10.5e6, 11e6, 11.5e6, 12e6]
    assert ticks(5, 5) == [5]


def test_logarithmic_ticks() -> None:
    assert decades(0.5, 200) == [1, 10, 100]
    assert doublings(900, 5000) == [1024, 2048, 4096]
    assert len(doublings(1, 1 << 40)) <= 7
    assert doublings(1100, 1900) == []
