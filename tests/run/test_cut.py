from __future__ import annotations

import pytest

from openneutron.convert import convert
from openneutron.errors import RuntimeFailure, UnsupportedError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.litert.graph import Model, Operator, Tensor
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from tests import tiny


@pytest.mark.parametrize(
    ("code", "scale", "message"),
    [
        ("ADD", 1e-9, "operator 1 .ADD.: LiteRT's kernel would abort: its output scale 1e-09 is too fine"),
        ("SUB", 1e-9, "too fine"),
        ("SQUARED_DIFFERENCE", 1e-9, "too fine"),
    ],
)
def test_what_would_end_the_process_is_an_error(code: str, scale: float, message: str) -> None:
    g = GraphBuilder()
    x, a = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=0) for name in "xa")
    y = g.tensor("y", (1, 4), DType.INT8, scale=scale, zero_point=0)
    g.op("RELU", [x], [a])
    g.op(code, [a, a], [y])
    data = write_model(g.finish([x], [y]))
    for model in (data, convert(data, Options()).model):
        with pytest.raises(RuntimeFailure, match=message):
            LiteRtRunner(model)


def test_a_state_cannot_be_shared_across_a_cut() -> None:
    model = read_model(convert(tiny.sandwich(), Options()).model)
    graph = model.main
    state = Tensor("state", (1, 4, 4, 2), DType.INT8, graph.tensors[graph.inputs[0]].quantization, is_variable=True)
    graph.tensors.append(state)
    at = len(graph.tensors) - 1
    for position, name in ((0, "first"), (len(graph.operators) + 1, "last")):
        graph.tensors.append(Tensor(name, (1, 4, 4, 2), DType.INT8, state.quantization))
        graph.operators.insert(position, Operator("ADD", [graph.inputs[0], at], [len(graph.tensors) - 1]))
    with pytest.raises(UnsupportedError, match="state 'state' is used on both sides"):
        LiteRtRunner(write_model(Model([graph])))
