"""Weight order of the array, and the zero points folded into the bias."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.numbers.packing import fold_zero_point, pack_dense, pack_depthwise, pack_grouped, unpack_dense


@pytest.mark.parametrize(("units", "length"), [(8, 8), (4, 4), (16, 16), (2, 4)])
def test_dense_places_every_weight(units: int, length: int) -> None:
    cout, taps, cin = 11, 3, 9
    weights = np.random.default_rng(0).integers(-128, 128, (cout, taps, cin)).astype(np.int8)
    groups, blocks = -(-cout // units), -(-cin // length)
    packed = pack_dense(weights, units, length).view(np.int8).reshape(groups, taps, blocks, units, length)
    for c in range(cout):
        for k in range(cin):
            found = packed[c // units, :, k // length, c % units, k % length]
            assert np.array_equal(found, weights[c, :, k])
    assert packed.astype(np.int64).sum() == weights.astype(np.int64).sum()
    assert np.array_equal(unpack_dense(pack_dense(weights, units, length), weights.shape, units, length), weights)


def test_groups_follow_each_other() -> None:
    weights = np.arange(6 * 2 * 3).astype(np.int8).reshape(6, 2, 3)
    packed = pack_grouped(weights, 2, 8, 8)
    assert np.array_equal(packed, np.concatenate([pack_dense(weights[:3], 8, 8), pack_dense(weights[3:], 8, 8)]))


def test_depthwise_places_every_weight() -> None:
    weights = np.random.default_rng(0).integers(-128, 128, (9, 11)).astype(np.int8)
    packed = pack_depthwise(weights, 8).view(np.int8).reshape(2, 9, 8)
    assert all(np.array_equal(packed[c // 8, :, c % 8], weights[:, c]) for c in range(11))
    assert not packed[1, :, 3:].any()


@pytest.mark.parametrize(("zero_point", "weights_zero"), [(0, 0), (-128, 0), (17, 5), (255, -128)])
def test_folded_bias_equals_subtracting_in_the_loop(zero_point: int, weights_zero: int) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-128, 128, (3, 2, 2, 4)).astype(np.int8)
    x = rng.integers(0, 256, (2, 2, 4))
    bias = rng.integers(-1000, 1000, 3)
    wide = weights.astype(np.int64)
    expected = ((x - zero_point) * (wide - weights_zero)).sum(axis=(1, 2, 3)) + bias
    folded = fold_zero_point(bias, weights, zero_point, weights_zero)
    assert np.array_equal((x * wide).sum(axis=(1, 2, 3)) - weights_zero * x.sum() + folded, expected)


def test_folded_bias_wraps_like_the_accumulator() -> None:
    folded = fold_zero_point(np.array([2**31 - 1]), np.full((1, 4), -128, np.int8), 1)
    assert folded.tolist() == [2**31 - 1 + 512 - 2**32]
