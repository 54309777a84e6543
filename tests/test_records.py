"""Records behave as the standard library's dataclasses do, in everything that is used of them."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from openneutron.records import dataclass


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
