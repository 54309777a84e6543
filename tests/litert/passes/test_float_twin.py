"""The float twin of a quantized model makes the errors of its weights and of the steps that are asked for."""

from __future__ import annotations

import numpy as np

from openneutron.litert import DType, Model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.float_twin import float_twin, real_values
from openneutron.quantize_litert.float_model import run_twin

WEIGHTS = np.int8([[10, -3, 0, 7], [1, 2, 3, 4]])
SAMPLE = np.float32([[0.12, -0.77, 1.31, 0.49]])


def layer() -> Model:
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.FLOAT32)
    stored = g.tensor("stored", (1, 4), DType.INT8, 0.1, 3)
    w = g.tensor("w", (2, 4), DType.INT8, 0.5, 0, data=WEIGHTS)
    b = g.tensor("b", (2,), DType.INT32, 0.05, 0, data=np.int32([20, -40]))
    y = g.tensor("y", (1, 2), DType.INT8, 0.25, -1)
    g.op("QUANTIZE", [x], [stored])
    g.op("FULLY_CONNECTED", [stored, w, b], [y])
    return g.finish([x], [y])


def test_all_steps_and_none() -> None:
    exact = SAMPLE @ (0.5 * WEIGHTS.T) + np.float32([1, -2])
    (found,) = run_twin(float_twin(layer(), steps=()))([SAMPLE])
    assert np.allclose(found, exact, atol=1e-5)
    (found,) = run_twin(float_twin(layer()))([SAMPLE])
    rounded = np.rint(SAMPLE / 0.1) * 0.1 @ (0.5 * WEIGHTS.T) + np.float32([1, -2])
    assert np.allclose(found, np.rint(rounded / 0.25) * 0.25, atol=1e-5)


def test_the_steps_of_one_tensor() -> None:
    model = layer()
    at = next(number for number, tensor in enumerate(model.main.tensors) if tensor.name == "y")
    exact = SAMPLE @ (0.5 * WEIGHTS.T) + np.float32([1, -2])
    (found,) = run_twin(float_twin(model, steps={at}))([SAMPLE])
    assert np.allclose(found, np.rint(exact / 0.25) * 0.25, atol=1e-5)


def test_values_of_channels_and_of_a_scalar() -> None:
    g = GraphBuilder()
    one = g.tensor("one", (2, 2), DType.INT8, (0.5, 2.0), (0, 0), data=np.int8([[1, 2], [3, 4]]))
    assert real_values(g.graph.tensors[one]).tolist() == [[0.5, 1.0], [6.0, 8.0]]
    scalar = g.tensor("scalar", (), DType.INT8, 0.5, 0, data=np.array(3, np.int8))
    assert float(np.array(real_values(g.graph.tensors[scalar]))) == 1.5
