from __future__ import annotations

import numpy as np

from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model


def test_only_what_nothing_names_goes() -> None:
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.INT8, 0.5, 0)
    g.tensor("dead", (1000,), DType.INT8, data=np.zeros(1000, np.int8))
    y = g.tensor("y", (1, 4), DType.INT8, 0.5, 0)
    unread = g.tensor("unread", (1, 4), DType.INT8, 0.5, 0)
    g.op("RELU", [x], [y])
    g.op("RELU", [x], [unread])
    model = g.finish([x], [y], signature="serve")
    before = len(write_model(model))
    assert drop_tensors(model) == 1
    again = read_model(write_model(model))
    assert [t.name for t in again.main.tensors] == ["x", "y", "unread"]
    assert [(op.inputs, op.outputs) for op in again.main.operators] == [([0], [1]), ([0], [2])]
    assert (again.main.inputs, again.main.outputs) == ([0], [1])
    (signature,) = again.signatures
    assert (signature.inputs, signature.outputs) == ((("x", 0),), (("y", 1),))
    assert len(write_model(model)) < before - 1000
    assert drop_tensors(model) == 0


def test_absent_optional_inputs_stay_absent() -> None:
    g = GraphBuilder()
    g.tensor("dead", (4,), DType.INT8, data=np.zeros(4, np.int8))
    x = g.tensor("x", (1, 4), DType.INT8, 0.5, 0)
    w = g.tensor("w", (2, 4), DType.INT8, 0.5, 0, data=np.ones((2, 4), np.int8))
    y = g.tensor("y", (1, 2), DType.INT8, 0.5, 0)
    g.op("FULLY_CONNECTED", [x, w, -1], [y])
    model = g.finish([x], [y])
    drop_tensors(model)
    assert model.main.operators[0].inputs == [0, 1, -1]
