"""Constants of operators with one scale have the dimensions of the result, as LiteRT's quantizer needs them."""

from __future__ import annotations

import numpy as np

import openneutron as on
from openneutron.litert import DType, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.align_constants import align_constants


def test_a_short_constant_gets_more_dimensions_and_the_model_is_quantized() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 2, 3), DType.FLOAT32) for name in "xy")
    least = g.tensor("least", (1,), DType.FLOAT32, data=np.float32([-0.5]))
    g.op("MAXIMUM", [x, least], [y])
    model = g.finish([x], [y])
    data = write_model(model)
    assert align_constants(model.main) == 1 and align_constants(model.main) == 0
    assert model.main.tensors[model.main.operators[0].inputs[1]].shape == (1, 1, 1)
    rows = np.random.default_rng(0).standard_normal((8, 2, 3)).astype(np.float32)
    program = on.compile(data, calibration=rows, quality="plain")
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 30
