from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.run.golden import golden_values
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny
from tests.golden import reference


@pytest.mark.parametrize("make", [tiny.convnet, tiny.sandwich, tiny.floats])
def test_outputs_are_those_of_an_ordinary_run_and_every_tensor_is_there(make) -> None:
    model = make()
    runner = LiteRtRunner(model)
    inputs = random_inputs(runner.inputs, seed=1)
    values = golden_values(model, inputs)
    graph = read_model(model).main
    assert {t for op in graph.operators for t in op.outputs} <= set(values)
    for index, expected in zip(graph.outputs, runner.run(inputs).outputs.values(), strict=True):
        assert np.array_equal(values[index], expected)


def test_sum_is_computed_as_its_quantization_defines_it() -> None:
    g = GraphBuilder()
    x = g.tensor("x", (1, 4, 4, 3), DType.INT8, scale=0.1, zero_point=-5)
    axes = g.tensor("axes", (2,), DType.INT32, data=[1, 2])
    y = g.tensor("y", (1, 3), DType.INT8, scale=0.7, zero_point=2)
    g.op("SUM", [x, axes], [y], keep_dims=False)
    z = g.tensor("z", (1, 3), DType.INT8, scale=0.7, zero_point=2)
    g.op("ABS", [y], [z])
    model = write_model(g.finish([x], [z]))
    (value,) = random_inputs([read_model(model).main.tensors[x]], seed=2)
    assert np.array_equal(golden_values(model, [value])[z], reference(model, [value])[0])
