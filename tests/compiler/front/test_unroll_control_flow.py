"""Loops and branches before the stages: where they stay, which reason they get, and how reports number what is left."""

from __future__ import annotations

import pytest

from openneutron.compiler.front.unroll_control_flow import read_unrolled, unroll_control_flow
from openneutron.convert import convert
from openneutron.litert import read_model
from openneutron.machine import targets
from openneutron.options import Options
from tests.loops import Loop


def test_a_note_says_how_often_a_loop_runs() -> None:
    done = unroll_control_flow(read_model(Loop(rows=9).data()), targets.load("imxrt700"))
    assert done.notes == ("the loop of 'body' runs 9 times: its steps were unrolled",) and not done.reasons


def test_a_reason_is_that_of_the_operator_at_its_place() -> None:
    done = unroll_control_flow(read_model(Loop(at_run_time=True).data()), targets.load("imxrt700"))
    (reason,) = done.reasons.values()
    assert list(done.reasons) == [0] and reason.code == "control_flow" and reason.where == "loop_counter_out"
    assert reason.hint.startswith("give the loop a constant number of trips") and not done.notes


@pytest.mark.parametrize("pattern", ["WHILE", "y_out", "h_*"])
def test_a_loop_can_be_kept_by_its_name_or_that_of_an_output(pattern: str) -> None:
    model = read_model(Loop().data())
    unroll_control_flow(model, targets.load("imxrt700"), (pattern,))
    assert [op.code for op in model.main.operators] == ["WHILE"]


def test_reports_number_the_operators_of_the_straight_model() -> None:
    data = Loop(outputs=("sequence", "counter")).data()
    report = convert(data, Options(target="mcxn94x")).report
    graph = read_unrolled(data, targets.load("mcxn94x"), source="loop").main
    assert [op.code for op in report.operators] == [op.code for op in graph.operators]
