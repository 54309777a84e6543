"""Integer parameters: fixed-point multipliers, activation ranges, and the proof behind exact rounding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.multipliers import (
    INT8_RANGE,
    UINT8_RANGE,
    activation_range,
    channel_table,
    exact_multipliers,
    multiplier,
    multipliers,
    round_half_away,
)
from openneutron.microcode.table import Rounding
from tests.sampling import examples
from tests.work import calls


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.5, 1), (-0.5, -1), (2.5, 3), (-2.5, -3), (0.49999999999999994, 0), (-1.2, -1), (0.0, 0), (2.0**40, 2**40)],
)
def test_round_half_away(value: float, rounded: int) -> None:
    assert round_half_away(value) == rounded


@pytest.mark.parametrize(
    ("real", "pair"),
    {
        "one": (1.0, (1 << 30, 1)),
        "half": (0.5, (1 << 30, 0)),
        "zero": (0.0, (0, 0)),
        "the mantissa rounds up to 1": (1.0 - 2.0**-40, (1 << 30, 1)),
        "smallest that counts": (2.0**-32, (1 << 30, -31)),
        "flushed to zero": (2.0**-33, (0, 0)),
    }.values(),
)
def test_multiplier(real: float, pair: tuple[int, int]) -> None:
    assert multiplier(real) == pair


@given(st.floats(1e-9, 1e9))
def test_multiplier_is_within_half_a_step(real: float) -> None:
    m, shift = multiplier(real)
    assert 1 << 30 <= m < 1 << 31
    assert abs(m * 2.0 ** (shift - 31) - real) <= 2.0 ** (shift - 32)


@pytest.mark.parametrize(
    ("activation", "scale", "zero_point", "limits", "expected"),
    [
        (0, 0.5, 3, INT8_RANGE, (-128, 127)),
        (1, 0.5, 3, INT8_RANGE, (3, 127)),
        (2, 0.5, 3, INT8_RANGE, (1, 5)),
        (3, 0.5, 3, INT8_RANGE, (3, 15)),
        (3, 0.01, 3, INT8_RANGE, (3, 127)),
        (1, 0.5, 128, UINT8_RANGE, (128, 255)),
        (2, 2.0, 0, INT8_RANGE, (-1, 1)),
    ],
)
def test_activation_range(
    activation: int, scale: float, zero_point: int, limits: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert activation_range(activation, scale, zero_point, limits) == expected


def double_rounding(acc: npt.NDArray[np.int64], real: float) -> npt.NDArray[np.int64]:
    """round(double(acc) * real), halves away from zero, as the reference kernel writes it."""
    product = acc.astype(np.float64) * real
    whole = np.trunc(product)
    return (whole + np.sign(product) * (np.abs(product - whole) >= 0.5)).astype(np.int64)


def applied(acc: npt.NDArray[np.int64], m: int, word: int, rounding: Rounding) -> list[int]:
    """The firmware's arithmetic in unbounded integers."""
    if rounding is Rounding.EXACT31:
        return [(int(a) * m + (1 << (word - 1))) >> word for a in acc]
    mantissa, shift = m << 22 | word >> 8, word & 0xFF
    return [_ieee(int(a), mantissa, shift) for a in acc]


def _ieee(acc: int, mantissa: int, shift: int) -> int:
    product = abs(acc) * mantissa
    dropped = max(product.bit_length() - 53, 0)
    kept, rest = product >> dropped, product & ((1 << dropped) - 1)
    half = (1 << dropped) >> 1
    kept += bool(dropped) and (rest > half or (rest == half and kept & 1))
    whole = ((kept << dropped) + (1 << (shift - 1))) >> shift
    return -whole if acc < 0 else whole


def accumulators(real: float, low: int, high: int, seed: int) -> npt.NDArray[np.int64]:
    """Random INT32, and the neighbours of every accumulator at which the result changes."""
    random = np.random.default_rng(seed).integers(-(2**31), 2**31, 500)
    edges = np.round((np.arange(low - 1, high + 2) + 0.5) / real)
    near = np.clip(edges[:, None] + np.arange(-2, 3), -(2**31), 2**31 - 1).astype(np.int64)
    return np.concatenate([random, near.reshape(-1), [-(2**31), 2**31 - 1, 0]])


def assert_proved(real: float, low: int, high: int) -> Rounding:
    table = exact_multipliers([real], low, high)
    acc = accumulators(real, low, high, seed=1)
    got = applied(acc, int(table.multipliers[0]), int(table.shifts[0]), table.rounding)
    expected = double_rounding(acc, real)
    assert np.array_equal(np.clip(got, low, high), np.clip(expected, low, high))
    return table.rounding


@examples(150)
@given(st.floats(-40, 8), st.integers(-128, 127), st.sampled_from([(-128, 127), (0, 255), (5, 90)]))
def test_exact_for_any_factor(exponent: float, zero_point: int, clamp: tuple[int, int]) -> None:
    assert_proved(2.0**exponent, clamp[0] - zero_point, clamp[1] - zero_point)


@examples(100)
@given(st.integers(1, 5000), st.sampled_from([2.0**-16, 2.0**-20, 1 / 255, 1 / (127 * 255)]))
def test_exact_where_halves_are_common(numerator: int, unit: float) -> None:
    assert_proved(numerator * unit, -128, 127)


def test_both_modes_occur() -> None:
    reals = 2.0 ** np.random.default_rng(3).uniform(-24, -18, 200)
    assert {assert_proved(float(real), -131, 124) for real in reals} == {Rounding.EXACT31, Rounding.EXACT53}


def test_a_factor_that_no_multiplier_replaces() -> None:
    """A quotient rounded down so far that the double product misses the half at 392 but reaches the one at 1960."""
    real = 2.0**-4 / 49
    assert_proved(real, -128, 127)
    assert double_rounding(np.array([392, 1960]), real).tolist() == [0, 3]
    assert exact_multipliers([real], -128, 127).rounding is Rounding.EXACT53


def test_one_channel_without_multiplier_decides_for_the_call() -> None:
    reals = [float(r) for r in 2.0 ** np.random.default_rng(3).uniform(-24, -4, 300)]
    table = exact_multipliers(reals, -128, 127)
    assert table.rounding is Rounding.EXACT53
    for at, real in enumerate(reals):
        acc = accumulators(real, -128, 127, seed=at)
        got = applied(acc, int(table.multipliers[at]), int(table.shifts[at]), table.rounding)
        assert np.array_equal(np.clip(got, -128, 127), np.clip(double_rounding(acc, real), -128, 127))


def test_a_dead_channel_gives_zero() -> None:
    table = exact_multipliers([0.0, 0.25], -128, 127)
    assert applied(
        np.array([-(2**31), 2**31 - 1]), int(table.multipliers[0]), int(table.shifts[0]), table.rounding
    ) == [
        0,
        0,
    ]


def test_proving_many_channels_is_vectorized() -> None:
    reals = list(2.0 ** np.random.default_rng(0).uniform(-14, -6, 1000))
    exact_multipliers(reals[:10], -128, 127)
    few, many = (calls(lambda n=n: exact_multipliers(reals[:n], -128, 127)) for n in (100, 1000))  # type: ignore[misc]
    assert many < 3 * few


def test_channel_table_pads_to_the_group() -> None:
    words = channel_table([1, -2, 2**31 - 1], [4, 5, 6], [-7, 8, 9], 4).view("<i4").reshape(3, 4)
    assert words.tolist() == [[1, -2, 2**31 - 1, 0], [4, 5, 6, 0], [-7, 8, 9, 0]]


def test_one_multiplier_stands_for_all_channels() -> None:
    words = channel_table([1, 2, 3], [4], [-7], 2).view("<i4").reshape(3, 4)
    assert words.tolist() == [[1, 2, 3, 0], [4, 4, 4, 0], [-7, -7, -7, 0]]


@given(st.lists(st.floats(2.0**-60, 2.0**20), min_size=1, max_size=40))
def test_many_multipliers_at_once_are_the_same(reals: list[float]) -> None:
    edges = [0.0, 1.0, 1.0 - 2.0**-40, 2.0**-32, 2.0**-33, 0.75 + 2.0**-32, float(np.float32(0.3)) * 0.1]
    found, shifts = multipliers([*reals, *edges])
    assert list(zip(found, shifts, strict=True)) == [multiplier(real) for real in (*reals, *edges)]
