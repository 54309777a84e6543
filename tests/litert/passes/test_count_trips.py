"""Trips of a loop: counted from constants, with any step and any comparison, and not beyond the bound."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.graph import Graph
from openneutron.litert.passes.control_flow import MOST_TRIPS, NotUnrolled
from openneutron.litert.passes.count_trips import count_trips


def graphs(code: str = "LESS", limit: int = 9, step: int = 1, add: str = "ADD") -> tuple[Graph, Graph]:
    """WHILE i `code` limit: i = i `add` step; x is carried along."""
    condition, body = GraphBuilder("cond"), GraphBuilder("body")
    i, x = (condition.tensor(name, (), DType.INT32) for name in "ix")
    done = condition.tensor("done", (), DType.BOOL)
    condition.op(code, [i, condition.tensor("limit", (), DType.INT32, data=limit)], [done])
    j, y, after = (body.tensor(name, (), DType.INT32) for name in "jyn")
    body.op(add, [j, body.tensor("step", (), DType.INT32, data=step)], [after])
    return condition.finish([i, x], [done]).main, body.finish([j, y], [after, y]).main


CASES = {
    "from 0": (graphs(), 0, 9),
    "from 3 by 2": (graphs(step=2), 3, 3),
    "down": (graphs("GREATER", 2, 3, "SUB"), 10, 3),
    "down to it": (graphs("GREATER_EQUAL", 1, 3, "SUB"), 10, 4),
    "up to it": (graphs("LESS_EQUAL", 9, 4), 1, 3),
    "until it is it": (graphs("NOT_EQUAL", 12, 3), 0, 4),
    "while it is it": (graphs("EQUAL", 5), 5, 1),
    "doubled": (graphs(limit=1000, step=2, add="MUL"), 1, 10),
    "never": (graphs(), 9, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_trips_are_counted(name: str) -> None:
    (condition, body), first, trips = CASES[name]
    assert count_trips(condition, body, [np.array(first, np.int32), None]) == trips


@pytest.mark.parametrize("step", [0, -1])
def test_a_loop_without_end_is_not_counted_forever(step: int) -> None:
    with pytest.raises(NotUnrolled, match=f"more than {MOST_TRIPS:,} times"):
        count_trips(*graphs(step=step), [np.array(0, np.int32), None])


def test_what_is_known_at_run_time_only_is_named() -> None:
    with pytest.raises(NotUnrolled, match="depends on 'j', whose first value"):
        count_trips(*graphs(), [None, np.array(0, np.int32)])


def test_an_operator_that_is_not_computed_here_is_named() -> None:
    with pytest.raises(NotUnrolled, match="depends on what POW computes"):
        count_trips(*graphs(add="POW"), [np.array(1, np.int32), None])


def test_a_condition_that_is_no_single_bool() -> None:
    condition, body = graphs()
    condition.outputs = [condition.inputs[0]]
    with pytest.raises(NotUnrolled, match="not one BOOL"):
        count_trips(condition, body, [np.array(1, np.int32), None])


def test_a_condition_without_operators() -> None:
    condition, body = graphs()
    condition.operators = []
    condition.tensors[condition.outputs[0]].data = np.array(False)
    assert count_trips(condition, body, [None, None]) == 0
