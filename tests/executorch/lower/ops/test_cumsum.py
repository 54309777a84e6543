"""Cumulative sums are exact in the accumulator and rounded once."""

from __future__ import annotations

import torch

from tests.executorch.harness import check, reasons

CASES = {
    "last": lambda: (lambda x: x.cumsum(-1), (torch.randn(2, 9),)),
    "middle": lambda: (lambda x: torch.relu(x).cumsum(1), (torch.randn(2, 6, 5),)),
}


def test_cumsum() -> None:
    assert check(CASES).codes.count("FULLY_CONNECTED") == 2


def test_a_long_dimension_stays_with_the_reason() -> None:
    assert "it has 600" in reasons(lambda x: x.cumsum(-1), (torch.randn(1, 600),))["short_enough"]
