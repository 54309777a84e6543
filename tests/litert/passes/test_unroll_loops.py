"""Loops with a constant number of trips run on the NPU, bit for bit as LiteRT runs them; others say why they do not."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.litert.graph import Model
from openneutron.litert.passes.control_flow import MOST_OPERATORS
from openneutron.litert.passes.unroll_loops import unroll_loops
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.result import Result
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.loops import CELLS, Loop

TAKEN: dict[str, Loop] = {
    "a layer": Loop(),
    "plain cells": Loop(gated=False),
    "steps by slice": Loop(reads="slice"),
    "steps by strided slice": Loop(reads="strided"),
    "rows written between slices": Loop(writes="concat"),
    "counter from 2 on": Loop(start=2),
    "every second step": Loop(rows=8, stride=2, reads="slice", writes="concat"),
    "one condition": Loop(bounds=1, limit=4),
    "batch": Loop(batch=3),
    "last state": Loop(outputs=("state",)),
    "two outputs": Loop(outputs=("sequence", "state")),
    "weights carried along": Loop(captured=True),
    "state seen with another scale": Loop(handed_on=(1 / 100, 5)),
    "a constant first state": Loop(zeros=True),
    "an LSTM": Loop(lstm=True, reads="strided"),
    "an LSTM from zeros, last state": Loop(lstm=True, zeros=True, writes="concat", outputs=("state",)),
    "an LSTM of 16 bits": Loop(lstm=True, zeros=True, wide=True),
    "16 bits": Loop(wide=True),
    "16 bits, last state": Loop(wide=True, writes="concat", outputs=("state",), batch=2),
}


def exact(data: bytes, result: Result, seeds: int = 2, *, proved: bool = True) -> None:
    """The compiled file is LiteRT's, and proved."""
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for seed in range(seeds):
        inputs = random_inputs(reference.inputs, seed=seed)
        wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
        assert list(wanted) == list(got) and all(np.array_equal(wanted[key], got[key]) for key in wanted)
    if proved:
        prove(result.model, data)


def left(result: Result) -> tuple[str, str, str]:
    """Code, reason and hint of the only operator that stays."""
    (one,) = [op for op in result.report.operators if not op.converted]
    return one.code, one.reason, one.hint


@pytest.mark.parametrize(("name", "target"), [*zip(TAKEN, itertools.cycle(targets.names()), strict=False)])
def test_a_loop_is_litert_and_rolled_again(name: str, target: str) -> None:
    data = TAKEN[name].data()
    result = convert(data, Options(target=target))
    assert all(op.converted for op in result.report.operators) and result.report.passes["roll_steps"] == 1
    assert len(read_model(result.model).graphs) == 1 and "times: its steps were unrolled" in " ".join(
        result.report.notes
    )
    exact(data, result)


def test_a_loop_that_never_runs_hands_through() -> None:
    data = Loop(start=6, outputs=("state", "sequence", "time")).data()
    exact(data, convert(data, Options()))


def test_counters_that_leave_the_model_are_constants() -> None:
    data = Loop(start=1, outputs=("sequence", "counter", "time", "input", "state")).data()
    result = convert(data, Options())
    assert all(op.converted for op in result.report.operators)
    exact(data, result)


def test_a_state_that_is_kept_around_a_loop() -> None:
    """A variable is read before the loop and assigned behind it, as layers that are stateful in Keras do."""
    g = GraphBuilder()
    loop = Loop(outputs=("sequence", "state")).model()
    g.graph, g.called = loop.main, loop.graphs[1:]
    (x, h), (y, state) = g.graph.inputs, g.graph.outputs
    before = len(g.graph.operators)
    handle = g.variable("state", np.full((1, CELLS), 9), DType.INT8)
    g.op("READ_VARIABLE", [handle], [h])
    g.graph.operators = [*g.graph.operators[before:], *g.graph.operators[:before]]
    g.op("ASSIGN_VARIABLE", [handle, state], [])
    data = write_model(g.finish([x], [y]))
    result = convert(data, Options(target="imxrt700"))
    assert all(op.converted for op in result.report.operators) and result.report.passes["roll_steps"] == 1
    exact(data, result, seeds=4)


def refined(trips: Any, *, depth: int = 1) -> bytes:
    """Loops around loops, the innermost of which adds x to y; `trips` of each, a tensor of the innermost where it is None."""
    g = GraphBuilder()
    kinds = {"i": ((), DType.INT32, None), "x": ((1, 4), DType.INT8, 0.1), "y": ((1, 4), DType.INT8, 0.1)}

    def tensors(g: GraphBuilder, suffix: str = "") -> list[int]:
        return [g.tensor(f"{n}{suffix}", shape, kind, scale) for n, (shape, kind, scale) in kinds.items()]

    numbers: list[int] = []
    for level in range(depth):
        condition, body = GraphBuilder(f"cond{level}"), GraphBuilder(f"body{level}")
        values = tensors(condition)
        less = condition.tensor("less", (), DType.BOOL)
        condition.op("LESS", [values[0], condition.tensor("n", (), DType.INT32, data=trips)], [less])
        condition.graph.inputs, condition.graph.outputs = values, [less]
        values, n, y = tensors(body), body.tensor("n", (), DType.INT32), body.tensor("y2", (1, 4), DType.INT8, 0.1)
        body.op("ADD", [values[0], body.tensor("one", (), DType.INT32, data=1)], [n])
        if numbers:
            after = tensors(body, "_inner")
            zero = body.tensor("zero", (), DType.INT32, data=0)
            body.op(
                "WHILE", [zero, *values[1:]], after, cond_subgraph_index=numbers[-2], body_subgraph_index=numbers[-1]
            )
            body.op("ADD", [after[2], values[1]], [y])
        else:
            body.op("ADD", [values[2], values[1]], [y])
        body.graph.inputs, body.graph.outputs = values, [n, values[1], y]
        numbers += [g.calls(condition.graph), g.calls(body.graph)]
    values, made = tensors(g), tensors(g, "_out")
    g.graph.tensors[values[0]].data = np.array(0, np.int32)
    g.op("WHILE", values, made, cond_subgraph_index=numbers[-2], body_subgraph_index=numbers[-1])
    return write_model(g.finish(values[1:], made[2:]))


def test_a_loop_in_a_loop() -> None:
    data = refined(3, depth=2)
    result = convert(data, Options(target="mcxn94x"))
    assert [op.code for op in result.report.operators] == ["ADD"] * 12
    exact(data, result)


def test_loops_in_loops_have_a_bound_together() -> None:
    code, reason, hint = left(convert(refined(30, depth=3), Options()))
    assert code == "WHILE" and f"at most {MOST_OPERATORS:,} of all loops" in reason and "fewer steps" in hint


def chosen(condition: bool | None) -> bytes:
    """IF: x + x, else x · x."""
    g = GraphBuilder()
    numbers = []
    for code in ("ADD", "MUL"):
        inner = GraphBuilder(code)
        x, y = (inner.tensor(name, (1, 4), DType.INT8, 0.1, 3) for name in "xy")
        inner.op(code, [x, x], [y])
        numbers.append(g.calls(inner.finish([x], [y]).main))
    yes = g.tensor("yes", (1,), DType.BOOL, data=None if condition is None else [condition])
    x, y = (g.tensor(name, (1, 4), DType.INT8, 0.1, 3) for name in "xy")
    g.op("IF", [yes, x], [y], then_subgraph_index=numbers[0], else_subgraph_index=numbers[1])
    return write_model(g.finish([x] if condition is not None else [yes, x], [y]))


@pytest.mark.parametrize(("condition", "code"), [(True, "ADD"), (False, "MUL")])
def test_the_branch_of_a_constant_condition_is_taken(condition: bool, code: str) -> None:
    data = chosen(condition)
    result = convert(data, Options())
    assert [op.code for op in result.report.operators] == [code] and result.report.operators[0].converted
    exact(data, result)


def sine(g: GraphBuilder, h: int) -> int:
    made = [g.tensor(f"sine{at}", (1, CELLS), DType.FLOAT32) for at in range(2)]
    g.op("DEQUANTIZE", [h], made[:1])
    g.op("SIN", made[:1], made[1:])
    back = g.tensor("back", (1, CELLS), DType.INT8, 1 / 128, 0)
    g.op("QUANTIZE", made[1:], [back])
    return back


LEFT: dict[str, tuple[bytes, str, str]] = {
    "trips from an input": (Loop(at_run_time=True).data(), "number of trips is not constant.*'loop_counter'", "unroll=True"),
    "too many trips": (Loop(rows=5000, gated=False).data(), "more than 4,096 times", "fewer steps"),
    "too many operators": (Loop(rows=1100).data(), "runs 1,100 times with 11 operators", "fewer steps"),
    "a body that the NPU cannot run": (Loop(extra=sine).data(), "DEQUANTIZE of its body", "INT8"),
    "a branch at run time": (chosen(None), "branches runs is only known at run time", "compute both"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_says_why_and_runs_on_the_cpu(name: str) -> None:
    data, wanted, advice = LEFT[name]
    result = convert(data, Options())
    code, reason, hint = left(result)
    assert code in ("WHILE", "IF")
    assert re.search(wanted, reason) and advice in hint
    assert [op.code for op in read_model(result.model).main.operators] == [code]
    exact(data, result, seeds=1, proved="too many" not in name)  # the checker would take its time


def test_a_loop_beside_the_npu_stays_whole() -> None:
    model = read_model(Loop(extra=sine).data())
    graph = model.main
    tensor = graph.tensors[graph.outputs[0]]
    graph.tensors.append(type(tensor)("z", tensor.shape, DType.INT8, tensor.quantization))
    g = GraphBuilder()
    g.graph = graph
    g.op("ADD", [graph.outputs[0], graph.outputs[0]], [len(graph.tensors) - 1])
    graph.outputs = [len(graph.tensors) - 1]
    model.signatures = []
    data = write_model(model)
    result = convert(data, Options())
    assert [op.label for op in read_model(result.model).main.operators] == ["WHILE", "NeutronGraph"]
    exact(data, result)


def test_the_user_keeps_loops_on_the_cpu() -> None:
    data = Loop().data()
    result = convert(data, Options(operators_not_to_delegate=("WHILE",)))
    assert left(result)[:2] == ("WHILE", "left on the CPU on request")
    exact(data, result, seeds=1)


def changed(model: Model, change: Any) -> bytes:
    change(model)
    return write_model(model)


def test_values_that_change_their_shape_stay() -> None:
    """LiteRT would make the state grow from trip to trip; here the file only claims so."""

    def grow(model: Model) -> None:
        body = model.graphs[2]
        body.tensors[body.inputs[2]].shape = (2, CELLS)

    code, reason, hint = left(convert(changed(Loop().model(), grow), Options()))
    assert code == "WHILE" and "'h' is int8 [2, 12], and is given int8 [1, 12]" in reason and "one shape" in hint


def test_graphs_that_take_other_values_stay() -> None:
    def cut(model: Model) -> None:
        model.graphs[1].inputs.pop()

    assert "do not take and give" in left(convert(changed(Loop().model(), cut), Options()))[1]


def test_variables_in_a_body_stay() -> None:
    def read(g: GraphBuilder, h: int) -> int:
        handle, made = g.tensor("handle", (), DType.RESOURCE), g.tensor("read", (1, CELLS), DType.INT8, 1 / 128, 0)
        g.op("VAR_HANDLE", [], [handle], container="", shared_name="v")
        g.op("READ_VARIABLE", [handle], [made])
        return made

    assert "VAR_HANDLE, which acts by more" in left(convert(Loop(extra=read).data(), Options()))[1]


def test_a_body_that_calls_itself_is_an_error_with_its_number() -> None:
    model = Loop().model()
    body = model.graphs[2]
    inner = GraphBuilder()
    inner.graph = body
    after = [
        inner.tensor(f"again{at}", body.tensors[t].shape, body.tensors[t].dtype) for at, t in enumerate(body.inputs)
    ]
    inner.op("WHILE", body.inputs, after, cond_subgraph_index=1, body_subgraph_index=2)
    with pytest.raises(FormatError, match="graph 2 calls itself"):
        convert(write_model(model), Options())


def test_nothing_changes_without_loops() -> None:
    model = read_model(chosen(True))
    model.main.operators = []
    assert unroll_loops(model, lambda graph, op: None).loops == []
