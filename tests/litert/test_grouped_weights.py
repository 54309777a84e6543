"""4-bit weights as INT8: exact integers, small errors, and quotients that another tool chose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.grouped_weights import GROUP_SIZES, join_groups, quantize_groups

Array = np.ndarray


def decibels(real: Array, made: Array) -> float:
    """The signal in `made` over its error."""
    return float(10 * np.log10((real**2).sum() / ((real - made) ** 2).sum()))


def with_float_scales(real: Array, group: int) -> Array:
    """Round with a scale in float for each group, from its largest weight: what most tools do."""
    groups = real.reshape(len(real), -1, group or real.shape[1])
    steps = np.abs(groups).max(axis=2, keepdims=True) / 7
    return (np.rint(groups / steps) * steps).reshape(real.shape)


@pytest.mark.parametrize("group", [*GROUP_SIZES, 0])
def test_factors_lose_nothing_against_scales_in_float(group: int) -> None:
    real = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    values, scales = quantize_groups(real, group)
    assert decibels(real, values * scales[:, None]) > decibels(real, with_float_scales(real, group))


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 32, 0]), st.integers(1, 70), st.sampled_from([1.0, 1e-12, 1e6]))
def test_weights_are_quotients_of_four_bits_times_factors(seed: int, group: int, inputs: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    real = (rng.standard_normal((5, inputs)) * 10.0 ** rng.uniform(-2, 2, (5, 1)) * size).astype(np.float32)
    real[rng.integers(5)] = 0
    values, scales = quantize_groups(real, group)
    assert (scales >= np.float32(2**-20)).all() and np.abs(values.astype(int)).max() <= 127
    step = group or inputs
    for row in values.astype(int):
        for at in range(0, inputs, step):
            part = row[at : at + step]
            assert any(not (part % factor).any() and np.abs(part // factor).max() <= 15 for factor in range(1, 17))


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_quotients_of_another_tool_stay(seed: int, with_zero_points: bool) -> None:
    rng = np.random.default_rng(seed)
    quotients = rng.integers(-8, 8, (6, 4, 32))
    if with_zero_points:
        quotients = quotients - rng.integers(-7, 8, (6, 4, 1))
    scales = rng.uniform(0.2, 1, (6, 4)).astype(np.float32)
    real = (quotients * scales[:, :, None]).reshape(6, -1).astype(np.float32)
    made = quantize_groups(real, 32), join_groups(quotients.reshape(6, -1).astype(np.int8), scales, 32)
    for values, found in made:
        factors = values.reshape(6, 4, 32).astype(int) // np.where(quotients == 0, 1, quotients)
        assert (factors == np.where(quotients == 0, 0, factors.max(axis=2, keepdims=True))).all()
        assert decibels(real, values * found[:, None]) > 22


def test_scales_that_are_multiples_are_exact() -> None:
    quotients = np.arange(-8, 8, dtype=np.int8).repeat(2)[None].repeat(3, axis=0)
    scales = np.float32([[0.5, 0.25], [1.0, 0.2], [0.125, 0.125]])
    values, found = join_groups(quotients, scales, 16)
    assert np.allclose(values * found[:, None], quotients * scales.repeat(16, axis=1), rtol=1e-6)


def test_negative_scales_turn_the_quotients() -> None:
    values, scales = join_groups(np.int8([[1, 2, 3, 4]]), np.float32([[-0.5, 0.5]]), 2)
    assert (values[0] * scales[0] == [-0.5, -1, 1.5, 2]).all()


def test_many_rows_are_handled_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    real = np.random.default_rng(0).standard_normal((9, 64)).astype(np.float32)
    whole = quantize_groups(real, 32)
    monkeypatch.setattr("openneutron.litert.grouped_weights._CHUNK", 130)
    pieces = quantize_groups(real, 32)
    assert (whole[0] == pieces[0]).all() and (whole[1] == pieces[1]).all()
