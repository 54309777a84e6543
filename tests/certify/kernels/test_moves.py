"""Calls that move bytes leave the tags where the bytes go, and are refused where they leave their memory."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from openneutron.certify.refused import Refused
from openneutron.certify.tags import constant
from openneutron.certify.world import World
from tests.certify.small import call, given, machine, operand, run_call

FRAME = dict.fromkeys(("before_batch", "before_height", "before_width", "before_channels"), 0)


def test_a_pad_is_the_input_in_a_frame() -> None:
    world = World()
    one = call(
        "pad", {"input": operand("input", (1, 2, 2, 1)), "output": operand("output", (1, 3, 3, 1))},
        FRAME | {"before_height": 1, "before_width": 1, "value": -7},
    )  # fmt: skip
    x, fill = given(world, 0, 4), 249
    made = run_call(machine(world, [4], [9]), one)
    assert list(made) == [fill, fill, fill, fill, x[0], x[1], fill, x[2], x[3]]


def test_a_frame_smaller_than_the_input_is_refused() -> None:
    world = World()
    one = call(
        "pad", {"input": operand("input", (1, 2, 2, 1)), "output": operand("output", (1, 2, 2, 1))},
        FRAME | {"before_width": 1, "value": 0},
    )  # fmt: skip
    with pytest.raises(Refused, match="the frame is smaller than the input"):
        run_call(machine(world, [4], [4]), one)


def copy(**changes: Any) -> Any:
    """A transpose of 2 x 3 bytes."""
    params = {
        "input_offset": 0, "output_offset": 0, "dims": (1, 1, 1, 1, 3, 2), "input_strides": (0, 0, 0, 0, 1, 3),
        "output_strides": (0, 0, 0, 0, 2, 1),
    }  # fmt: skip
    operands = {"input": operand("input", (1, 1, 1, 6)), "output": operand("output", (1, 1, 1, 6))}
    return call("copy", operands, params | changes)


def test_a_copy_follows_its_strides() -> None:
    world = World()
    x = given(world, 0, 6)
    assert run_call(machine(world, [6], [6]), copy()) == array("Q", [x[at] for at in (0, 3, 1, 4, 2, 5)])


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"input_offset": 1}, "leaves input"), ({"dims": (1, 1, 1, 1, 3, 3)}, "more than the output holds"),
     ({"output_offset": 2}, "leaves output"), ({"input_offset": -1}, "leave an operand")],
)  # fmt: skip
def test_a_copy_outside_its_memory_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why):
        run_call(machine(World(), [6], [6]), copy(**changes))


def nearest(world: World, *numbers: int) -> array[int]:
    """2 x 2 pixels as 2 x 3, by tables of two rows and three columns."""
    table = b"".join(one.to_bytes(4, "little", signed=True) for one in numbers)
    operands = {
        "input": operand("input", (1, 2, 2, 1)), "rows": operand("weights", (1, 1, 1, 2), "INT32"),
        "columns": operand("weights", (1, 1, 1, 3), "INT32", 8), "output": operand("output", (1, 2, 3, 1)),
    }  # fmt: skip
    return run_call(machine(world, [4], [6], table), call("resize_nearest", operands, {"item": 1}))


def test_nearest_neighbours_are_picked_by_known_tables() -> None:
    world = World()
    x = given(world, 0, 4)
    assert nearest(world, 1, 0, 0, 0, 1) == array("Q", [x[2], x[2], x[3], x[0], x[0], x[1]])
    for outside in ((2, 0, 0, 0, 1), (0, 0, 0, 0, -1)):
        with pytest.raises(Refused, match="leaves the image"):
            nearest(world, *outside)


def test_a_slice_takes_every_second_column() -> None:
    world = World()
    operands = {"input": operand("input", (1, 1, 4, 1)), "output": operand("output", (1, 1, 2, 1))}
    x = given(world, 0, 4)
    one = call("slice", operands, {"first": (0, 0, 1, 0), "step": (1, 1, 2, 1)})
    assert run_call(machine(world, [4], [2]), one) == array("Q", [x[1], x[3]])
    one.params["first"] = (0, 0, 2, 0)
    with pytest.raises(Refused, match="outside its input"):
        run_call(machine(world, [4], [2]), one)


def test_what_moves_is_bytes_of_known_constants_too() -> None:
    world = World()
    ready = machine(world, [], [6], bytes(range(6)))
    one = copy()
    one.operands["input"] = operand("weights", (1, 1, 1, 6))
    assert run_call(ready, one) == constant(bytes([0, 3, 1, 4, 2, 5]))
