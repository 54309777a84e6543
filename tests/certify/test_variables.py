"""Variables of a source and the states that may be theirs."""

from __future__ import annotations

from itertools import islice

from openneutron.certify.read.microcode import State
from openneutron.certify.tags import constant
from openneutron.certify.variables import Variable, assignments, first_contents
from tests.certify.small import tensor


def variable(size: int, initial: bytes | None = None) -> Variable:
    return Variable(initial, constant(bytes(size)))


def test_first_contents_are_the_zero_point_of_int8_and_zeros_otherwise() -> None:
    assert first_contents(tensor((3,), zero=-128)) == b"\x80\x80\x80"
    assert first_contents(tensor((2,), "INT16", zero=5)) == bytes(4)


def test_a_state_is_a_variable_of_its_size_and_contents() -> None:
    states = [State(0, bytes(16)), State(16, b"\x01" * 16)]
    free = [
        (b"twos", variable(16, b"\x02" * 16)),
        (b"ones", variable(16, b"\x01" * 16)),
        (b"zeros", variable(12, bytes(12))),
    ]
    assert list(assignments(states, free)) == [(b"zeros", b"ones")]
    # Contents that are not known may be any; a state is at most one alignment larger than its variable.
    assert list(assignments(states[:1], [(b"any", variable(16))])) == [(b"any",)]
    assert list(assignments([State(0, bytes(32))], [(b"any", variable(16))])) == []
    assert list(assignments([State(0, bytes(16))], [(b"large", variable(17))])) == []


def test_alike_variables_are_tried_in_their_order_and_no_longer_than_bounded() -> None:
    free = [(b"%d" % at, variable(16)) for at in range(40)]
    states = [State(16 * at, bytes(16)) for at in range(40)]
    assert next(assignments(states, free)) == tuple(name for name, _ in free)
    assert list(assignments([State(0, bytes(16))] * 41, free)) == [], "more states than variables"
    hopeless = [*states[:-1], State(0, bytes(160))]
    assert list(islice(assignments(hopeless, free), 1)) == [], "the search ends"
