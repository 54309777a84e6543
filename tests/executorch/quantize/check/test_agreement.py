"""Values agree up to float rounding: decibels, zeros, infinities, NaN, comparisons."""

from __future__ import annotations

import torch

from openneutron.executorch.quantize.check.agreement import difference

X = torch.linspace(-3, 3, 1001)


def test_rounding_is_no_difference() -> None:
    assert difference(X, X * (1 + 1e-6)) == ""
    assert difference(X > 0, X > 1e-9) == ""


def test_more_than_rounding_is() -> None:
    assert difference(X, X * 1.01) == "40.0 dB"
    assert "instead of" in difference(X, X.reshape(7, 143))
    assert difference(X > 0, X > 1) == "166 of 1001 values differ"


def test_small_values_count_beside_large_ones() -> None:
    wide = torch.cat([X * 1e4, X])
    assert "values differ" in difference(wide, torch.cat([X * 1e4, X * 1.5]))


def test_zeros_infinities_and_nan() -> None:
    zeros = torch.relu(X)
    assert difference(zeros, zeros.clamp(min=1e-5)) == "numbers where the model has zeros"
    endless = torch.where(X > 2, torch.inf, X)
    assert difference(endless, X) == "infinities in other places"
    assert difference(endless, endless) == ""
    nowhere = torch.where(X > 2, torch.nan, X)
    assert difference(X, nowhere) == "NaN where the model has numbers"
    assert difference(nowhere, X) == ""


def test_coarse_rounding_of_all_values_is_no_difference_where_one_is_near_zero() -> None:
    values = torch.linspace(1, 4, 512)
    values[100] = 1e-3
    coarse = values + 3e-5 * torch.where(torch.arange(512) % 2 == 0, 1.0, -1.0)
    assert difference(values, coarse) == ""
    alone = values.clone()
    alone[100] += 1e-4  # only this one differs, as behind a clamp that few values reach
    assert difference(values, alone) == "1 of 512 values differ"
