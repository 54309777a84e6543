"""Tables as composites: what is written is read back, and graphs that nothing calls go."""

from __future__ import annotations

import numpy as np

from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from openneutron.litert.passes.drop_graphs import drop_graphs
from openneutron.litert.read import read_model
from openneutron.litert.table_composite import NAME, is_table
from openneutron.litert.write import write_model


def two_tables() -> Model:
    g = GraphBuilder()
    x, y, z = (g.tensor(name, (2, 3), DType.INT8, 0.5, 0) for name in "xyz")
    g.table(x, np.arange(-128, 128), y)
    g.table(y, np.arange(-128, 128)[::-1], z)
    return g.finish([x], [z])


def test_all_tables_of_a_model_share_one_graph() -> None:
    model = read_model(write_model(two_tables()))
    assert len(model.graphs) == 2 and model.graphs[1].name == NAME
    assert all(is_table(op.options2) for op in model.main.operators)
    entries = model.main.tensors[model.main.operators[1].inputs[1]].data
    assert entries is not None and list(entries[:2]) == [127, 126]


def test_graphs_that_nothing_calls_go_and_the_rest_is_renumbered() -> None:
    model = two_tables()
    assert drop_graphs(model) == 0
    model.graphs.insert(1, model.graphs[1])
    for op in model.main.operators:
        op.options2.decompositionSubgraphIndex = 2
    assert drop_graphs(model) == 1 and len(model.graphs) == 2
    assert {op.options2.decompositionSubgraphIndex for op in model.main.operators} == {1}
    model.main.operators = []
    assert drop_graphs(model) == 1 and len(model.graphs) == 1
