"""Memory of a NeutronGraph: copies arrive when they are waited for, and calls stay inside what they own."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest

from openneutron.certify.read.microcode import Call, Copy, Loop, Operand, Program, State, Wait
from openneutron.certify.refused import Refused
from openneutron.certify.replay import Machine
from openneutron.certify.tags import MOVING, NOTHING, constant, fill_tags
from openneutron.certify.world import World
from tests.certify.small import call, given, machine, operand

FETCH = Copy(40, 1, ("weights", 0, 4), ("prefetch", 0, 0), 4)


def ready(*steps: Any, states: tuple[State, ...] = ()) -> Machine:
    sizes = {
        ("weights", 0): 8,
        ("prefetch", 0): 4,
        ("scratch", 0): 8,
        ("input", 0): 4,
        ("output", 0): 4,
        ("state", 0): 16,
    }
    made = Machine(Program("imxrt700", 1, 1, sizes, (), steps, 0, states), World(), "operator 0")
    made.start(bytes(range(8)), [given(made.world, 0, 4)], [constant(b"kept")] * len(states))
    return made


def test_memory_begins_with_constants_inputs_and_states() -> None:
    made = ready(states=(State(0, bytes(16)),))
    assert made.regions["weights", 0] == constant(bytes(range(8)))
    assert made.regions["scratch", 0] == fill_tags(NOTHING, 8)
    assert made.regions["input", 0] == given(made.world, 0, 4)
    assert made.regions["state", 0] == constant(b"kept") + fill_tags(NOTHING, 12)
    with pytest.raises(Refused, match="input 0 has 3 bytes"):
        made.start(bytes(8), [given(made.world, 0, 3)], [])


def test_a_copy_arrives_when_it_is_waited_for() -> None:
    made = ready()
    made.step(FETCH, 0)
    assert made.regions["prefetch", 0] == fill_tags(MOVING, 4)
    made.step(Wait(60, 2), 0)
    assert made.regions["prefetch", 0] == fill_tags(MOVING, 4), "another channel"
    made.step(Wait(60, 1), 0)
    assert made.regions["prefetch", 0] == constant(bytes([4, 5, 6, 7])) and not made.pending


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((FETCH,), "a copy is never waited for"),
        ((replace(FETCH, size=5),), "a copy leaves weights 0"),
        ((replace(FETCH, target=("weights", 0, 0)),), "weights is written"),
        ((replace(FETCH, target=("input", 0, 0)),), "input is written"),
        ((FETCH, replace(FETCH, channel=2)), "written while a copy uses it"),
        ((Loop(20, 1 << 30, (FETCH, Wait(60, 1))),), "more work"),
    ],
)  # fmt: skip
def test_copies_that_no_schedule_makes_are_refused(steps: tuple[Any, ...], why: str) -> None:
    with pytest.raises(Refused, match=why):
        ready(*steps).run()


def relabel(**changes: Any) -> Call:
    """A table on four bytes, some field of whose input is another."""
    row = operand("input", (1, 1, 4, 1))
    operands = {"input": replace(row, **changes), "table": operand("weights", (1, 1, 1, 256)),
                "output": operand("output", (1, 1, 4, 1))}  # fmt: skip
    return call("lut", operands, {"entries": 256})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"offset": 1}, "input ends at byte 5 of input with 4"), ({"index": 1}, "of input with 0"),
        ({"pixel": 0}, "pixels of input overlap"), ({"ring": 2, "pitch": 0}, "holds 2 rows of 1"),
        ({"height": 1 << 30}, "has .* elements"), ({"pixel": 2}, "input ends at byte 7"),
    ],
)  # fmt: skip
def test_an_operand_stays_inside_its_region(changes: dict[str, int], why: str) -> None:
    with pytest.raises(Refused, match=why):
        machine(World(), [4], [4], bytes(range(256))).call(relabel(**changes), 0)


def test_rows_beside_the_output_are_not_computed() -> None:
    made = machine(World(), [4], [4], bytes(range(256)))
    made.call(replace(relabel(), first_row=1), 0)
    assert made.calls == 0 and made.regions["output", 0] == fill_tags(NOTHING, 4)
    made.call(relabel(), 0)
    assert made.calls == 1 and made.regions["output", 0] == given(made.world, 0, 4)
    assert made.writers == {0: [(0, 4, 8)]}


def test_a_call_that_writes_what_it_reads_is_refused_unless_it_goes_element_by_element() -> None:
    made = machine(World(), [4], [4], bytes(range(256)), scratch=8)
    made.regions["scratch", 0] = given(made.world, 0, 4) + fill_tags(NOTHING, 4)

    def on_scratch(start: int) -> Call:
        one = relabel()
        one.operands["input"] = operand("scratch", (1, 1, 4, 1))
        one.operands["output"] = operand("scratch", (1, 1, 4, 1), offset=start)
        return one

    made.call(on_scratch(0), 0)  # exactly in place
    with pytest.raises(Refused, match="of scratch is read and written by the same call"):
        made.call(on_scratch(2), 0)


def test_a_kernel_without_a_rule_and_fetched_constants_are_refused() -> None:
    made = machine(World(), [4], [4], bytes(range(256)), prefetch=4)
    with pytest.raises(Refused, match="no rule for kernel fft"):
        made.call(replace(relabel(), kernel="fft"), 0)
    one = relabel()
    one.operands["output"] = operand("prefetch", (1, 1, 4, 1))
    with pytest.raises(Refused, match="constants that were fetched are written"):
        made.call(one, 0)


def test_rows_are_found_by_pitch_and_ring() -> None:
    made = machine(World(), [8], [4])
    one = call("lut", {"input": Operand("input", 0, 0, 0, 8, 4, 2, 2, 1, 4, 2, 1), "output": operand("output", (1, 4, 2, 1))},
               {"entries": 256})  # fmt: skip
    x = given(made.world, 0, 8)
    assert [made.row(one, "input", 0, y) for y in range(4)] == [array("Q", [x[at], x[at + 2]]) for at in (0, 4, 0, 4)]
