"""Sums of products are known by weights, folded biases, factors and geometry; what LiteRT leaves undefined has no rule."""

from __future__ import annotations

from typing import Any

import pytest

from openneutron.certify.numbers import multiplier
from openneutron.certify.operators.products import _total
from openneutron.certify.world import World
from tests.certify.small import apply_rule, const, tensor

GEOMETRY = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 1}
WEIGHTS = const([1, 2, 3, -4, -5, 6], "INT8", (2, 3), scale=0.5)


def dense(world: World, *, weights: Any = WEIGHTS, bias: Any = None, zero: int = 4, **options: Any) -> Any:
    bias = const([10, -20]) if bias is None else bias
    return apply_rule(
        "FULLY_CONNECTED", [tensor((1, 3), zero=zero), weights, bias], tensor((1, 2)), world=world, **options
    )


def test_the_zero_point_is_folded_into_the_bias() -> None:
    world = World()
    assert dense(world) is not None
    (made,) = world.known["vectors"]
    assert [row[0] for row in made.what["rows"]] == [b"\x01\x02\x03", b"\xfc\xfb\x06"]
    assert [row[1] for row in made.what["rows"]] == [10 - 4 * 6, -20 - 4 * -3]
    assert [row[2] for row in made.what["rows"]] == [0.5, 0.5]
    assert _total(b"\xff\x02") == 1


def test_every_constant_matters() -> None:
    world = World()
    made = dense(world)
    assert made == dense(world)
    assert made != dense(world, bias=const([10, -21]))
    assert made != dense(world, weights=const([1, 2, 3, -4, -5, 7], "INT8", (2, 3), scale=0.5))
    assert made != dense(world, weights=const([1, 2, 3, -4, -5, 6], "INT8", (2, 3), scale=0.25))
    assert made != dense(world, zero=5) and made != dense(world, FusedActivationFunction=1)


def test_forms_without_a_rule() -> None:
    world = World()
    assert dense(world, weights=tensor((2, 3))) is None, "weights that are computed"
    assert dense(world, bias=const([10, -20], "INT64")) is None, "biases of another width"
    assert dense(world, bias=const([10])) is None, "a bias too few"
    assert dense(world, WeightsFormat=1) is None


@pytest.mark.parametrize(
    ("bias", "known"), [((1 << 46), True), (1 << 47, False), (-(1 << 47), False), ((1 << 47) - 1, False)]
)
@pytest.mark.parametrize("code", ["FULLY_CONNECTED", "CONV_2D"])
def test_sums_beyond_48_bits_have_no_rule(code: str, bias: int, known: bool) -> None:
    """LiteRT's arithmetic on sums of INT16 products is defined below 2^47."""
    image = code == "CONV_2D"
    x, y = ((1, 1, 1, 3), (1, 1, 1, 2)) if image else ((1, 3), (1, 2))
    weights = const([1, 2, 3, -4, -5, 6], "INT8", (2, 1, 1, 3) if image else (2, 3), scale=1e-6)
    made = apply_rule(code, [tensor(x, "INT16"), weights, const([bias, 0], "INT64")], tensor(y, "INT16"), **GEOMETRY)
    assert (made is not None) == known


def test_a_double_that_does_not_fit_int32_has_no_rule() -> None:
    weights = const([1, 2, 3, -4, -5, 6], "INT8", (2, 3), scale=0.5)
    made = apply_rule("FULLY_CONNECTED", [tensor((1, 3), "INT16"), weights, const([1 << 40, 0], "INT64")],
                   tensor((1, 2), "INT16"))  # fmt: skip
    assert made is None


def test_convolutions_are_dense_or_lanes() -> None:
    world = World()
    x, y = tensor((1, 3, 3, 2)), tensor((1, 2, 2, 4))
    kernel = const(bytes(range(32)), "INT8", (4, 2, 2, 2), scale=(0.5, 0.25, 0.125, 1.0))
    assert apply_rule("CONV_2D", [x, kernel, None], y, world=world, **GEOMETRY) is not None
    (one,) = world.known["dense"]
    assert one.what["geometry"] == (2, 2, 1, 1, 1, 1, 0, 0, 1)
    assert [row[2] for row in one.what["rows"]] == [multiplier(scale) for scale in (0.5, 0.25, 0.125, 1.0)]
    deep = const(bytes(range(16)), "INT8", (1, 2, 2, 4), scale=0.5)
    assert apply_rule("DEPTHWISE_CONV_2D", [x, deep, None], y, world=world, **GEOMETRY) is not None
    (lane,) = world.known["lanes"]
    assert [row[0] for row in lane.what["rows"]] == [bytes(range(at, 16, 4)) for at in range(4)]
    assert lane.what["geometry"][-1] == 2
    assert apply_rule("CONV_2D", [x, kernel, None], tensor((1, 3, 3, 4)), world=world, **GEOMETRY) is None


def test_transposed_convolutions_need_the_shape_they_make() -> None:
    kernel = const(bytes(8), "INT8", (1, 2, 2, 2), scale=0.5)
    for asked, known in (([1, 4, 4, 1], True), ([1, 4, 5, 1], False)):
        made = apply_rule("TRANSPOSE_CONV", [const(asked), kernel, tensor((1, 2, 2, 2))], tensor((1, 4, 4, 1)),
                       **GEOMETRY | {"StrideH": 2, "StrideW": 2})  # fmt: skip
        assert (made is not None) == known


def test_products_of_activations() -> None:
    world = World()
    left, right = tensor((2, 3)), tensor((4, 3))
    made = apply_rule("BATCH_MATMUL", [left, right], tensor((2, 4)), world=world, AdjY=True)
    assert made is not None
    assert made != apply_rule("BATCH_MATMUL", [left, tensor((3, 4))], tensor((2, 4)), world=world)
    assert apply_rule("BATCH_MATMUL", [left, tensor((4, 3), "UINT8")], tensor((2, 4)), world=world, AdjY=True) is None
