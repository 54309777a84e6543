from __future__ import annotations

import sys

import pytest

from benchmarks.timing import Times, command, interleaved, ratio, rounds


def test_contestants_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []
    found = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, runs=3)
    assert order == ["a", "b"] * 4 and set(found) == {"a", "b"} and min(found.values()) >= 0


def test_a_command_that_fails_says_so() -> None:
    command([sys.executable, "-c", "pass"])()
    with pytest.raises(RuntimeError, match="no luck"):
        command([sys.executable, "-c", "raise SystemExit('no luck')"])()


def test_rounds_give_every_contestant_as_many_turns() -> None:
    found = rounds({"a": lambda: None, "b": lambda: None}, seconds=0.0)
    assert {len(times.rounds) for times in found.values()} == {5}


def test_a_ratio_is_taken_round_by_round() -> None:
    # A neighbour slows three rounds, one of them halfway: the medians would say 0.22, four rounds of five say 2.
    theirs, ours = Times((2.0, 20.0, 2.2, 2.0, 30.0)), Times((1.0, 10.0, 1.1, 10.0, 15.0))
    assert ratio(theirs, ours) == pytest.approx(2.0)
