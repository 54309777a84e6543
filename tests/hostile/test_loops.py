"""Files of loops answer quickly: many of them, loops in loops, loops without end, and loops of many values."""

from __future__ import annotations

import time

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Graph
from openneutron.options import Options

SECONDS = 100.0  # of CPU; two to five are typical, and each of these files asks for hours


def condition(values: int, limit: int) -> Graph:
    g = GraphBuilder("cond")
    carried = [g.tensor(f"v{at}", (), DType.INT32) for at in range(values)]
    less = g.tensor("less", (), DType.BOOL)
    g.op("LESS", [carried[0], g.tensor("limit", (), DType.INT32, data=limit)], [less])
    return g.finish(carried, [less]).main


def body(values: int, step: int, inner: tuple[int, int] | None = None) -> Graph:
    """Count on; with `inner`, a loop inside goes through all of its trips before."""
    g = GraphBuilder("body")
    carried = [g.tensor(f"v{at}", (), DType.INT32) for at in range(values)]
    after = g.tensor("after", (), DType.INT32)
    if inner is not None:
        zero = g.tensor("zero", (), DType.INT32, data=0)
        made = [g.tensor(f"m{at}", (), DType.INT32) for at in range(values)]
        g.op("WHILE", [zero, *carried[1:]], made, cond_subgraph_index=inner[0], body_subgraph_index=inner[1])
    g.op("ADD", [carried[0], g.tensor("step", (), DType.INT32, data=step)], [after])
    g.graph.inputs, g.graph.outputs = carried, [after, *carried[1:]]
    return g.graph


def loops(count: int = 1, values: int = 1, limit: int = 4000, step: int = 1, depth: int = 1) -> bytes:
    """A model of so many loops beside an operator that the NPU runs."""
    g = GraphBuilder()
    inner = None
    for _ in range(depth):
        inner = (g.calls(condition(values, limit)), g.calls(body(values, step, inner)))
    assert inner is not None
    x, y = (g.tensor(name, (1, 4), DType.INT8, 0.1, 0) for name in "xy")
    g.op("ABS", [x], [y])
    first = [g.tensor(f"first{at}", (), DType.INT32, data=np.array(0, np.int32)) for at in range(values)]
    outputs = []
    for number in range(count):
        made = [g.tensor(f"loop{number} {at}", (), DType.INT32) for at in range(values)]
        g.op("WHILE", first, made, cond_subgraph_index=inner[0], body_subgraph_index=inner[1])
        outputs.append(made[0])
    return write_model(g.finish([x], [y, *outputs]))


HOSTILE = {
    "many loops": {"count": 200},
    "without end": {"step": 0},
    "many without end": {"count": 50, "step": 0},
    "loops in loops": {"depth": 6},
    "a thousand deep": {"depth": 1000},
    "loops in loops in many": {"depth": 4, "count": 100, "limit": 40},
    "many values": {"values": 1000},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_is_answered_in_time(name: str) -> None:
    data = loops(**HOSTILE[name])  # type: ignore[arg-type]
    began = time.thread_time()
    result = convert(data, Options())
    assert result.report.operators[0].converted or result.report.totals.neutron_graphs == 0
    left = [op for op in result.report.operators if op.code == "WHILE"]
    assert all(op.reason and op.hint for op in left)
    try:
        prove(result.model, data)
    except Refused as refused:
        assert str(refused)
    assert time.thread_time() - began < SECONDS
