"""Steps of layers that keep something: known by their constants, their input and what they kept."""

from __future__ import annotations

from typing import Any

import pytest

from openneutron.certify.operators import RULES
from openneutron.certify.operators.recurrent import lstm_step, name_of, svdf_step
from openneutron.certify.tags import constant
from openneutron.certify.world import World
from tests.certify.small import const, context, given, tensor


def svdf(world: World, *, feature: Any = None, variable: bool = True, rank: int = 1) -> Any:
    """Two units of rank 1, three inputs, memory of two steps."""
    feature = const([1, 2, 3, -4, -5, 6], "INT8", (2, 3), scale=0.5) if feature is None else feature
    time = const([1, 2, 3, 4], "INT16", (2, 2), scale=0.5)
    memory = tensor((1, 4), "INT16", 0.5, variable=variable)
    made = context("SVDF", [tensor((1, 3)), feature, time, const([7, 8]), memory], tensor((1, 2)), world=world,
                   Rank=rank, FusedActivationFunction=1)  # fmt: skip
    return RULES["SVDF"](made), made.kept


def test_a_step_moves_the_memory_on() -> None:
    world = World()
    made, kept = svdf(world)
    assert made is not None and len(made[0]) == 2
    (after,) = kept.values()
    before = given(world, 3, 8)  # input 3 of the model, behind three constants, in this hand-made graph
    assert len(after) == 8 and after != before
    assert svdf(world) == (made, kept)


@pytest.mark.parametrize(
    "change",
    [{"variable": False}, {"rank": 3}, {"feature": tensor((2, 3))}],
    ids=["no variable", "rank", "computed weights"],
)
def test_other_forms_have_no_rule(change: dict[str, Any]) -> None:
    made, kept = svdf(World(), **change)
    assert made is None and not kept


def test_other_weights_are_another_step() -> None:
    world = World()
    other = const([1, 2, 3, -4, -5, 7], "INT8", (2, 3), scale=0.5)
    assert svdf(world)[0] != svdf(world, feature=other)[0]


def test_steps_are_found_by_name_input_and_memory() -> None:
    world = World()
    names = name_of("filters"), name_of("units")
    x, memory = constant(b"abc"), constant(bytes(8))
    assert svdf_step(world, names, (2, 2), x, memory, add=False) is None
    made = svdf_step(world, names, (2, 2), x, memory, add=True)
    assert made is not None and svdf_step(world, names, (2, 2), x, memory, add=False) == made
    assert svdf_step(world, names, (2, 2), constant(b"abd"), memory, add=False) is None
    # Each filter forgets its oldest result and has a new one behind the rest.
    assert list(made[1][0:2]) == [0, 0] and made[1][2] > 255


def test_a_step_of_an_lstm_makes_hidden_and_cell_state() -> None:
    world = World()
    given_ = constant(b"x"), constant(b"hidden"), constant(b"cell")
    assert lstm_step(world, b"name", (3, 2), given_, add=False) is None
    made = lstm_step(world, b"name", (3, 2), given_, add=True)
    assert made is not None and (len(made[0]), len(made[1])) == (3, 4)
    assert lstm_step(world, b"other", (3, 2), given_, add=False) is None
