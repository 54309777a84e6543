"""Two tensors element by element, pools, reductions and integers that shapes are computed from."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from openneutron.certify.operators.elements import exponentials, softmax_tables
from openneutron.certify.tags import constant, value_of
from openneutron.certify.world import World
from tests.certify.small import apply_rule, const, given, tensor

WINDOW = {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2, "Padding": 0, "FusedActivationFunction": 0}


def test_a_sum_is_known_by_its_parameters_and_inputs() -> None:
    world = World()
    a, b = tensor((4,)), tensor((4,), scale=0.25)
    one = apply_rule("ADD", [a, b], tensor((4,)), world=world)
    assert one == apply_rule("ADD", [a, b], tensor((4,)), world=world)
    assert one != apply_rule("SUB", [a, b], tensor((4,)), world=world)
    assert one != apply_rule("ADD", [a, b], tensor((4,), zero=1), world=world)
    assert one != apply_rule("ADD", [a, tensor((4,))], tensor((4,)), world=world)
    (made, *_) = [each.what for each in world.known["elements"]]
    params = dict(made["meaning"][1])
    # Both sides on twice the larger scale, with 20 bits below the point: 1/2 and 1/4 of it.
    assert (params["multiplier1"], params["shift1"]) == (1 << 30, 0)
    assert (params["multiplier2"], params["shift2"]) == (1 << 30, -1)
    assert (params["clamp_low"], params["clamp_high"], params["subtract"]) == (-128, 127, 0)


def test_a_side_that_repeats_is_spread_out() -> None:
    world = World()
    apply_rule("MUL", [tensor((2, 2)), tensor((2,))], tensor((2, 2)), world=world)
    (made,) = world.known["elements"]
    assert made.what["left"] == given(world, 0, 4) and made.what["right"] == given(world, 1, 2) * 2


@pytest.mark.parametrize(
    ("code", "result"),
    [("ADD", 9), ("SUB", 5), ("MUL", 14), ("FLOOR_DIV", 3), ("FLOOR_MOD", 1), ("MAXIMUM", 7), ("MINIMUM", 2)],
)
def test_integers_without_a_scale_are_computed(code: str, result: int) -> None:
    made = apply_rule(code, [const([7, -7]), const([2])], tensor((2,), "INT32", 0))
    assert made is not None
    data = value_of(made[0])
    assert data is not None and struct.unpack("<2i", data)[0] == result


def test_division_by_zero_and_unknown_integers_have_no_value() -> None:
    assert apply_rule("FLOOR_DIV", [const([7]), const([0])], tensor((1,), "INT32", 0)) is None
    assert apply_rule("ADD", [tensor((1,), "INT32", 0), const([0])], tensor((1,), "INT32", 0)) is None


def test_conditions_are_computed() -> None:
    assert apply_rule("LESS", [const([1, 5]), const([3])], tensor((2,), "BOOL", 0)) == [constant(b"\x01\x00")]
    assert apply_rule("LOGICAL_NOT", [const(b"\x01\x00", "BOOL")], tensor((2,), "BOOL", 0)) == [constant(b"\x00\x01")]
    assert apply_rule("LESS", [const([1], scale=0.5), const([3])], tensor((1,), "BOOL", 0)) is None
    assert apply_rule("CAST", [const([-2])], tensor((1,), "INT64", 0)) == [constant(b"\xfe" + b"\xff" * 7)]


def test_the_exponential_table_is_the_exponential() -> None:
    table = struct.unpack("<256i", exponentials(1.0, 0.1))
    wanted = np.exp(-0.1 * np.arange(256)) * (1 << 31)
    assert table[0] == (1 << 31) - 1 and np.abs(np.array(table) - wanted).max() < 1 << 10
    both = struct.unpack("<1026h", softmax_tables())
    assert both[512] == 32767 and abs(both[0] - 32768 * np.exp(-10)) < 2 and abs(both[1025] - 16384) < 2


def test_pools_are_known_by_window_and_input() -> None:
    world = World()
    x, y = tensor((1, 4, 4, 3)), tensor((1, 2, 2, 3))
    most = apply_rule("MAX_POOL_2D", [x], y, world=world, **WINDOW)
    assert most is not None and most != apply_rule("AVERAGE_POOL_2D", [x], y, world=world, **WINDOW)
    assert most != apply_rule("MAX_POOL_2D", [x], y, world=world, **WINDOW | {"FusedActivationFunction": 1})
    assert apply_rule("MAX_POOL_2D", [x], tensor((1, 3, 2, 3)), world=world, **WINDOW) is None, "of another size"


def test_a_mean_over_the_image_is_the_pool_of_all_of_it() -> None:
    world = World()
    x = tensor((1, 4, 4, 3))
    pool = apply_rule("AVERAGE_POOL_2D", [x], tensor((1, 1, 1, 3)), world=world,
                   **WINDOW | {"FilterHeight": 4, "FilterWidth": 4, "Padding": 1})  # fmt: skip
    assert pool is not None and [one.kind for one in world.known["reduce"]] == ["reduce"]
    assert world.known["reduce"][0].what["count"] == 16


def test_softmax_of_two_bytes_needs_its_scale() -> None:
    x = tensor((1, 8), "INT16", 0.001)
    assert apply_rule("SOFTMAX", [x], tensor((1, 8), "INT16", 1 / 32768), Beta=1.0) is not None
    assert apply_rule("SOFTMAX", [x], tensor((1, 8), "INT16", 1 / 16384), Beta=1.0) is None
