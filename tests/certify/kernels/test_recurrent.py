"""A step of a recurrent layer must have the source's constants, read what it kept, and keep what the source keeps."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from openneutron.certify.numbers import multiplier
from openneutron.certify.operators import RULES
from openneutron.certify.refused import Refused
from openneutron.certify.tags import NOTHING, fill_tags
from openneutron.certify.world import World
from tests.certify.small import call, const, context, machine, operand, tensor

FEATURE, TIME, BIAS = [1, 2, 3, -4, -5, 6], [1, 2, 3, 4], [7, 8]


def source(world: World) -> Any:
    """Two units of rank 1 over three inputs, which remember two steps."""
    made = context(
        "SVDF",
        [tensor((1, 3)), const(FEATURE, "INT8", (2, 3), scale=0.5), const(TIME, "INT16", (2, 2), scale=0.5), const(BIAS),
         tensor((1, 4), "INT16", 0.5, variable=True)],
        tensor((1, 2)), world=world, Rank=1, FusedActivationFunction=1,
    )  # fmt: skip
    before = made.values[4]
    result = RULES["SVDF"](made)
    assert result is not None
    return before, result[0], made.kept[4]


def step(world: World, memory: Any, *, feature: list[int] | None = None, **changes: Any) -> Any:
    rounding = changes.pop("rounding", 1)
    data = struct.pack("<6b2x4i4h", *(feature or FEATURE), 0, 0, *BIAS, *TIME)
    scales = [multiplier(0.5 * 0.5 / 0.5), multiplier(0.5 * 0.5 / 0.5)]
    params = {
        "rank": 1, "steps": 2, "filter_multiplier": scales[0][0], "filter_shift": scales[0][1],
        "output_multiplier": scales[1][0], "output_shift": scales[1][1], "output_zero": 0,
    }  # fmt: skip
    operands = {
        "input": operand("input", (1, 1, 1, 3)), "weights": operand("weights", (1, 1, 1, 6)),
        "table": operand("weights", (1, 1, 1, 24), "INT8", 8), "memory": operand("state", (1, 1, 1, 4), "INT16"),
        "output": operand("output", (1, 1, 1, 2)),
    }  # fmt: skip
    ready = machine(world, [3], [2], data, state=8)
    ready.regions["state", 0] = memory
    ready.call(call("svdf", operands, params | changes, rounding=rounding), 0)
    return ready.regions["output", 0], ready.regions["state", 0]


def test_a_step_makes_and_keeps_what_the_source_does() -> None:
    world = World()
    before, made, after = source(world)
    assert step(world, before) == (made, after)


def test_other_constants_and_another_memory_are_refused() -> None:
    world = World()
    before, _, _ = source(world)
    for lie in ({"feature": [1, 2, 3, -4, -5, 7]}, {"output_zero": 1}, {"filter_shift": 3}):
        with pytest.raises(Refused, match="no operator of the source has these weights"):
            step(world, before, **lie)
    with pytest.raises(Refused, match="no operator of the source has these weights"):
        step(world, fill_tags(NOTHING, 8))


def test_what_no_such_layer_has_is_refused() -> None:
    world = World()
    before, _, _ = source(world)
    for lie, why in (({"rounding": 2}, "its rounding"), ({"rank": 0}, "2 units of rank 0"), ({"steps": 0}, "0 steps")):
        with pytest.raises(Refused, match=why):
            step(world, before, **lie)
