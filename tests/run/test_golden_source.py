"""Every operator's golden has a name, and every exception its reason."""

from __future__ import annotations

import pytest

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.graph import Graph
from openneutron.run.golden_source import golden_source


def _unary(code: str, dtype: DType = DType.INT8) -> Graph:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), dtype, scale=0.1, zero_point=0) for name in "xy")
    g.op(code, [x], [y])
    return g.finish([x], [y]).main


@pytest.mark.parametrize(("code", "engine"), [("ELU", "default"), ("TANH", "reference"), ("EXP", "reference")])
def test_unary_operators(code: str, engine: str) -> None:
    graph = _unary(code)
    found = golden_source(graph, graph.operators[0])
    assert found.engine == engine
    assert bool(found.exception) is (engine != "reference")
    assert found.name in (found.exception or found.name)
