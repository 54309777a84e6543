"""Packed weights are taken apart and compared with the source's, channel by channel."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from openneutron.certify.refused import Refused
from openneutron.certify.world import World
from tests.certify.small import apply_rule, call, const, machine, operand, run_call, tensor

# One unit of length one: weights lie as [channel][tap][input], biases, multipliers and shifts are columns behind them.
WEIGHTS = [1, 2, -3, 4, 5, -6, 7, 8]
GEOMETRY = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 1}
ZERO = 3


def convolution(
    world: World,
    *,
    weights: list[int] | None = None,
    changes: dict[str, int] | None = None,
    bias: int = 0,
    rounding: int = 1,
    offset: int = 0,
) -> Any:
    """Two channels of 2 x 2 taps on a 3 x 3 image, as a call states them."""
    (known,) = world.known["dense"]
    rows = known.what["rows"]
    stored = struct.pack("<8b", *(weights or WEIGHTS))
    columns = [rows[0][1] + bias, rows[1][1], *(row[2][0] for row in rows), *(row[2][1] for row in rows)]
    data = stored + struct.pack("<6i", *columns)
    params = {
        "kernel_h": 2,
        "kernel_w": 2,
        "stride_h": 1,
        "stride_w": 1,
        "dilation_h": 1,
        "dilation_w": 1,
        "pad_top": 0,
        "pad_left": 0,
        "groups": 1,
        "input_zero": ZERO,
        "weights_zero": 0,
        "output_zero": 0,
        "clamp_low": -128,
        "clamp_high": 127,
    }
    operands = {
        "input": operand("input", (1, 3, 3, 1), offset=offset),
        "weights": operand("weights", (1, 1, 1, 8)),
        "table": operand("weights", (1, 1, 1, 6), "INT32", 8),
        "output": operand("output", (1, 2, 2, 2)),
    }
    one = call("conv2d", operands, params | (changes or {}), rounding=rounding)
    return run_call(machine(world, [9 + offset], [8], data), one)


def source(world: World) -> Any:
    kernel = const(WEIGHTS, "INT8", (2, 2, 2, 1), scale=(0.5, 0.25))
    return apply_rule(
        "CONV_2D",
        [tensor((1, 3, 3, 1), zero=ZERO), kernel, const([100, -7])],
        tensor((1, 2, 2, 2)),
        world=world,
        **GEOMETRY,
    )


def test_a_convolution_is_that_of_the_source() -> None:
    world = World()
    assert source(world) == [convolution(world)]


@pytest.mark.parametrize(
    "lie",
    [
        {"weights": [*WEIGHTS[:-1], 9]},
        {"bias": 1},
        {"changes": {"input_zero": 2}},
        {"changes": {"clamp_low": 0}},
        {"changes": {"dilation_w": 2}},
    ],
)
def test_other_constants_and_parameters_are_refused(lie: dict[str, Any]) -> None:
    world = World()
    source(world)
    with pytest.raises(Refused, match="no operator of the source has these weights"):
        convolution(world, **lie)


def test_other_bytes_of_the_input_are_refused() -> None:
    world = World()
    source(world)
    with pytest.raises(Refused, match="the bytes it reads are not those"):
        convolution(world, offset=1)


def test_roundings_and_groups_that_no_convolution_has_are_refused() -> None:
    world = World()
    source(world)
    for lie in ({"rounding": 2}, {"changes": {"groups": 2}}, {"changes": {"groups": 0}}):
        with pytest.raises(Refused, match="rounding or groups are none"):
            convolution(world, **lie)


def test_a_table_of_constants_that_leaves_the_weights_is_refused() -> None:
    world = World()
    source(world)
    operands = {
        "input": operand("input", (1, 3, 3, 1)),
        "weights": operand("weights", (1, 1, 1, 8)),
        "table": operand("weights", (1, 1, 1, 6), "INT32", 8),
        "output": operand("output", (1, 2, 2, 2)),
    }
    params = dict.fromkeys(("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "groups"), 1)
    with pytest.raises(Refused, match="table ends at byte 32 of weights with 31"):
        run_call(machine(world, [9], [8], bytes(31)), call("conv2d", operands, params, rounding=1))


def matmul(world: World, **changes: int) -> Any:
    (known,) = world.known["matmul"]
    names = (
        "transpose_left",
        "transpose_right",
        "left_zero",
        "right_zero",
        "multiplier",
        "shift",
        "output_zero",
        "clamp_low",
        "clamp_high",
    )
    params = dict(zip(names, map(int, known.what["common"][1:]), strict=True)) | {
        "inner": 1,
        "left_inner": 1,
        "right_inner": 1,
    }
    operands = {
        "left": operand("input", (1, 1, 2, 3)),
        "right": operand("input", (1, 1, 3, 2), index=1),
        "output": operand("output", (1, 1, 2, 2)),
    }
    return run_call(machine(world, [6, 6], [4]), call("batch_matmul", operands, params | changes, rounding=1))


def test_a_product_of_activations_is_that_of_the_source() -> None:
    world = World()
    wanted = apply_rule("BATCH_MATMUL", [tensor((2, 3)), tensor((3, 2))], tensor((2, 2)), world=world)
    assert wanted == [matmul(world)]
    for lie in ({"left_zero": 1}, {"transpose_right": 1}, {"shift": 5}):
        with pytest.raises(Refused):
            matmul(world, **lie)
