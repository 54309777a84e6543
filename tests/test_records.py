"""Records behave as the standard library's dataclasses do, in everything that is used of them."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from openneutron.records import dataclass, field, fields, replace

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    note: str = field(default="", compare=False, repr=False)


@dataclass
class Bag:
    items: list[int] = field(default_factory=list)


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


def test_our_own_functions_answer_as_the_standard_ones() -> None:
    assert replace(Point(1), y=5) == Point(1, 5)
    assert [one.name for one in fields(Point(1))] == [one.name for one in fields(Point)] == ["x", "y", "note"]
    assert Point.y == 2 and Point.note == "" and not hasattr(Bag, "items")  # as attributes of the class
    assert fields(_fresh()["Named"])[0].metadata == {"unit": "mm"}
    with pytest.raises(TypeError, match="'z', which is none of its fields"):
        replace(Point(1), z=5)


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
    """Classes as nobody has used them yet."""

    @dataclass
    class Many:
        first: int
        second: list[int] = field(default_factory=list)
        third: str = "three"

    @dataclass(frozen=True)
    class Derived(Point):
        z: int = 4
        seen: list[int] = field(default_factory=list, compare=False)

        def __post_init__(self) -> None:
            self.seen.append(self.z)

    @dataclass
    class Named:
        size: int = field(kw_only=True, metadata={"unit": "mm"})
        name: str = "n"

    return {"Many": Many, "Derived": Derived, "Named": Named}


def test_fields_are_filled_by_place_by_name_and_from_defaults() -> None:
    made = _fresh()
    many, derived, named = made["Many"], made["Derived"], made["Named"]
    for number in range(3):  # the first instance is as all later ones
        one = many(number, third="x")
        assert list(vars(one).items()) == [("first", number), ("second", []), ("third", "x")]
        assert vars(many(number, [1])) == vars(_StandardMany(number, [1]))
        two = derived(1, z=number)
        assert (two.x, two.y, two.note, two.z, two.seen) == (1, 2, "", number, [number])
        three = named("m", size=number)
        assert (three.name, three.size) == ("m", number)
    assert many(1).second is not many(1).second


def test_what_is_no_plain_field_is_left_to_the_standard_library() -> None:
    @dataclass
    class Counted:
        count: ClassVar[int] = 7

    @dataclass
    class Given:
        given: InitVar[int]

    @dataclass
    class Derived(_StandardMany):
        fourth: int = 4

    for unusual in (Counted, Given, Derived):
        with pytest.raises(TypeError, match="the standard dataclass"):
            unusual()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda many: many(), r"Many\(\) misses 'first'"),
        (lambda many: many(1, [], "", 4), r"Many\(\) takes 3 values, 4 were given"),
        (lambda many: many(1, first=2), r"Many\(\) was given 'first' twice"),
        (lambda many: many(1, fourth=2), r"Many\(\) was given 'fourth', which is none of its fields"),
    ],
    ids=["missing", "too many", "twice", "unknown"],
)
def test_wrong_arguments_are_refused(wrong: Callable[[Any], object], said: str) -> None:
    with pytest.raises(TypeError):
        wrong(_StandardMany)
    with pytest.raises(TypeError, match=said):
        wrong(_fresh()["Many"])


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


def test_records_work_without_the_standard_module() -> None:
    source = """
from __future__ import annotations
import sys
from openneutron.records import dataclass, field, replace

@dataclass(frozen=True)
class Point:
    x: int
    y: list[int] = field(default_factory=list)

assert replace(Point(1), x=2) == Point(2) and repr(Point(1)) == "Point(x=1, y=[])"
assert "dataclasses" not in sys.modules and "inspect" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", source], check=True)
