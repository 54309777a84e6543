from __future__ import annotations

import numpy as np

import openneutron as on
from openneutron.litert import DType, read_model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.widen_integers import widen_integers

WEIGHTS = np.random.default_rng(8).integers(-127, 128, (4, 6), dtype=np.int8)
SCALES = [0.01, 0.02, 0.005, 0.03]
ROWS = np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32)


def stored(*, dequantized: bool = False, as_integers: bool = False) -> bytes:
    """A layer in float with INT8 weights, as "dynamic range" files have them, or behind a DEQUANTIZE."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.FLOAT32)
    w = g.tensor("w", (4, 6), DType.INT8, scale=SCALES, zero_point=[0] * 4, data=WEIGHTS)
    y = g.tensor("y", (1, 4), DType.FLOAT32)
    read = w
    if dequantized:
        read = g.tensor("wide", (4, 6), DType.FLOAT32)
        g.op("DEQUANTIZE", [w], [read])
    g.op("FULLY_CONNECTED", [x, read, -1], [y])
    return write_model(g.finish([x], [y, w] if as_integers else [y]))


def test_weights_become_the_numbers_they_stand_for() -> None:
    for data in (stored(), stored(dequantized=True)):
        model = read_model(data)
        assert widen_integers(model.main) == 1
        (op,) = model.main.operators
        weights = model.main.tensors[op.inputs[1]]
        assert weights.dtype is DType.FLOAT32 and weights.quantization is None
        assert np.allclose(weights.data, WEIGHTS * np.array(SCALES)[:, None])


def test_integers_that_are_an_output_stay() -> None:
    model = read_model(stored(as_integers=True))
    assert widen_integers(model.main) == 0


def test_a_model_with_integer_weights_is_quantized() -> None:
    program = on.compile(stored(), calibration=ROWS)
    assert program.report.totals.operators_converted == program.report.totals.operators_total == 1
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 25
