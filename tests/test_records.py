"""Records behave as the standard library's dataclasses do, in everything that is used of them."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from openneutron import records
from openneutron.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    note: str = dataclasses.field(default="", compare=False, repr=False)


@dataclass
class Bag:
    items: list[int] = dataclasses.field(default_factory=list)


class Standard:
    """The same two classes by the standard decorator."""

    Point = dataclasses.make_dataclass("Point", [("x", int), ("y", int, 2)], frozen=True)


def test_values_print_compare_and_hash() -> None:
    assert repr(Point(1)) == repr(Standard.Point(1)) == "Point(x=1, y=2)"
    assert Point(1, note="a") == Point(1, note="b") != Point(2)
    assert hash(Point(1, note="a")) == hash(Point(1, note="b")) == hash(Standard.Point(1))
    assert Point(1) != (1, 2) and len({Point(1), Point(1), Point(3)}) == 2


def test_what_is_not_frozen_has_no_hash() -> None:
    assert Bag() == Bag([]) and Bag([1]) != Bag()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bag())


def test_the_standard_functions_take_them() -> None:
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "note"]
    assert dataclasses.asdict(Bag([1])) == {"items": [1]}
    assert pickle.loads(pickle.dumps(Point(4))) == Point(4)


def test_methods_of_the_class_stay() -> None:
    @dataclass(frozen=True)
    class Named:
        name: str

        def __repr__(self) -> str:
            return self.name

    assert repr(Named("n")) == "n"


def test_what_is_frozen_is_so_at_run_time() -> None:
    @dataclass(frozen=True)
    class Point:
        x: int

    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        Point(1).x = 2  # type: ignore[misc]


@dataclasses.dataclass
class _StandardMany:
    first: int
    second: list[int] = dataclasses.field(default_factory=list)
    third: str = "three"


def _fresh() -> dict[str, Any]:
    """A class as nobody has used it yet, and one of unusual fields."""

    @dataclass
    class Many:
        first: int
        second: list[int] = dataclasses.field(default_factory=list)
        third: str = "three"

    @dataclass(frozen=True)
    class Derived(Point):
        z: int = 4
        seen: list[int] = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self) -> None:
            self.seen.append(self.z)

    @dataclass
    class Unusual:
        count: ClassVar[int] = 7
        given: InitVar[int]
        name: str = dataclasses.field(default="n", kw_only=True)
        made: int = dataclasses.field(init=False)

        def __post_init__(self, given: int) -> None:
            self.made = given + self.count

    return {"Many": Many, "Derived": Derived, "Unusual": Unusual}


def test_the_first_instances_are_made_as_all_later_ones() -> None:
    made = _fresh()
    many, derived, unusual = made["Many"], made["Derived"], made["Unusual"]
    filler = many.__init__
    for number in range(3 * records._MANY):  # type: ignore[attr-defined]
        one = many(number, third="x")
        assert vars(one) == {"first": number, "second": [], "third": "x"} and list(vars(one)) == [
            "first",
            "second",
            "third",
        ]
        assert vars(many(number, [1])) == vars(_StandardMany(number, [1]))
        two = derived(1, z=number)
        assert (two.x, two.y, two.note, two.z, two.seen) == (1, 2, "", number, [number])
        three = unusual(number, name="m")
        assert (three.made, three.name) == (number + 7, "m") and not hasattr(three, "given")
    assert many.__init__ is not filler


@pytest.mark.parametrize(
    "wrong",
    [
        lambda many: many(),
        lambda many: many(1, [], "", 4),
        lambda many: many(1, first=2),
        lambda many: many(1, fourth=2),
    ],
    ids=["missing", "too many", "twice", "unknown"],
)
def test_wrong_arguments_are_refused_as_the_standard_library_does(wrong: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError) as standard:
        wrong(_StandardMany)
    with pytest.raises(TypeError) as ours:
        wrong(_fresh()["Many"])
    assert str(ours.value).rpartition(".")[2] == str(standard.value).rpartition(".")[2]


@pytest.mark.parametrize(
    "ask",
    [dataclasses.fields, lambda cls: cls.__match_args__, dataclasses.is_dataclass, lambda cls: cls(1) == cls(1)],
    ids=["fields", "match", "is_dataclass", "compare"],
)
def test_a_class_may_be_asked_before_and_after_its_first_instance(ask: Callable[[Any], Any]) -> None:
    before, after = _fresh()["Many"], _fresh()["Many"]
    assert ask(before)
    assert after(1).third == "three" and ask(after)
    assert vars(before(5, third="t")) == vars(after(5, third="t")) == {"first": 5, "second": [], "third": "t"}
    assert before.__match_args__ == ("first", "second", "third")


def test_what_is_not_compared_or_printed_can_be_left_to_object() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Plain:
        x: int

    assert Plain(1) != Plain(1) and len({Plain(1), Plain(1)}) == 2 and "object at" in repr(Plain(1))
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        del Plain(1).x
