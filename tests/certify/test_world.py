"""What a source computes is found again by its key; elements are gathered as nested loops visit them."""

from __future__ import annotations

from array import array

from openneutron.certify.tags import constant
from openneutron.certify.world import World, dense, gather_elements, merge_loops


def test_the_same_key_is_the_same_result() -> None:
    world = World()
    one = world.add_computation("pool", "a", 4, window=3)
    assert world.add_computation("pool", "a", 4, window=3) == one
    assert world.add_computation("pool", "b", 4) != one and world.add_computation("reduce", "a", 4) != one
    assert [each.what for each in world.known["pool"]] == [{"window": 3}, {}]
    first = world.known["pool"][0]
    assert array("Q", first.part(1, 2)) == one[1:3]


def test_a_step_that_the_source_does_not_have_is_none() -> None:
    world = World()
    assert world.step("lstm", "gate", 2, add=False) is None
    made = world.step("lstm", "gate", 2, add=True)
    assert made is not None and world.step("lstm", "gate", 2, add=False) == made


def test_loops_are_joined_where_they_are_one() -> None:
    assert dense((2, 3, 4)) == [12, 4, 1]
    assert merge_loops((2, 3, 4), (12, 4, 1)) == ([24], [1])
    assert merge_loops((1, 3, 4), (99, 8, 1)) == ([3, 4], [8, 1])


def test_elements_are_gathered_in_order() -> None:
    tags = constant(bytes(range(12)))

    def bytes_of(*arguments: object) -> list[int]:
        return list(gather_elements(tags, *arguments))  # type: ignore[arg-type]

    assert bytes_of(1, (4, 3), (1, 4)) == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11], "a transpose"
    assert bytes_of(1, (2, 2), (6, 1), 1) == [1, 2, 7, 8], "a box from element 1 on"
    assert bytes_of(2, (2, 2), (0, 1)) == [0, 1, 2, 3] * 2, "repeated elements of two bytes"
    assert bytes_of(2, (3,), (-1,), 2) == [4, 5, 2, 3, 0, 1], "backwards"
    assert bytes_of(1, (3,), (0,), 5) == [5, 5, 5]
    assert bytes_of(1, (0, 3), (1, 1)) == []
    assert bytes_of(1, (), (), 7) == [7]
