"""Loops and branches on the CPU cost what their graphs do, as often as they run."""

from __future__ import annotations

import pytest

from openneutron.board.answer import stock_answer
from openneutron.board.cpu import CORTEX_M, cpu_cycles
from openneutron.board.loops import CpuWork, called_bytes
from openneutron.convert import convert
from openneutron.litert import read_model
from openneutron.machine import targets
from openneutron.options import Options
from tests.litert.passes.test_unroll_loops import chosen, refined
from tests.loops import CELLS, INPUTS, Loop


@pytest.mark.parametrize("rows", [5, 50])
def test_trips_count(rows: int) -> None:
    model = read_model(Loop(rows=rows).data())
    work = CpuWork(model, CORTEX_M)
    body = model.graphs[2]
    found = work.operator(model.main, model.main.operators[0])
    dense = [cpu_cycles(body, op, CORTEX_M) for op in body.operators if op.code == "FULLY_CONNECTED"]
    assert found["FULLY_CONNECTED"] == rows * sum(dense) and not work.unknown
    less = [cpu_cycles(model.graphs[1], op, CORTEX_M) for op in model.graphs[1].operators if op.code == "LESS"]
    assert found["LESS"] == (rows + 1) * sum(less)


def test_loops_in_loops_multiply() -> None:
    model = read_model(refined(3, depth=2))
    found = CpuWork(model, CORTEX_M).operator(model.main, model.main.operators[0])
    assert found["WHILE"] == 4 * cpu_cycles(model.main, model.main.operators[0], CORTEX_M)


def test_the_dearer_branch_counts() -> None:
    model = read_model(chosen(None))
    found = CpuWork(model, CORTEX_M).operator(model.main, model.main.operators[0])
    assert len(found) == 2 and "IF" in found


def test_a_loop_of_unknown_length_counts_once_and_the_answer_says_so() -> None:
    target = targets.load("mcxn94x")
    known, unknown = (stock_answer(Loop(rows=50, at_run_time=late).data(), target) for late in (False, True))
    assert not any("one trip" in note for note in known.notes)
    assert any("the time of 1 WHILE is that of one trip" in note for note in unknown.notes)
    assert known.cpu_milliseconds > 30 * unknown.cpu_milliseconds


@pytest.mark.parametrize("data", [Loop().data(), chosen(True)], ids=["WHILE", "IF"])
def test_nxp_gets_the_file_as_it_is(data: bytes) -> None:
    report = convert(data, Options(target="imxrt700")).report
    assert report.totals.neutron_graphs == 1
    assert (report.stock.operators_total, report.stock.operators_converted) == (1, 0)


def test_weights_of_a_body_are_in_flash() -> None:
    model = read_model(Loop().data())
    assert called_bytes(model, model.main.operators) > CELLS * (CELLS + INPUTS)
