from __future__ import annotations

import struct

import numpy as np

import openneutron as on
from openneutron.litert import DType, read_model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.standard_operators import use_standard_operators
from openneutron.run.runner import LiteRtRunner

WEIGHTS = np.random.default_rng(8).standard_normal((3, 2, 2, 4)).astype(np.float32)
IMAGES = np.random.default_rng(3).standard_normal((8, 1, 5, 5, 4)).astype(np.float32)


def upsampling(padding: int = 1) -> bytes:
    """MediaPipe's transposed convolution with a bias, twice the size."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 5, 5, 4), DType.FLOAT32)
    w = g.tensor("w", WEIGHTS.shape, DType.FLOAT32, data=WEIGHTS)
    bias = g.tensor("b", (3,), DType.FLOAT32, data=np.array([1, -2, 0.5], np.float32))
    y = g.tensor("y", (1, 10, 10, 3), DType.FLOAT32)
    g.custom("Convolution2DTransposeBias", [x, w, bias], [y], struct.pack("<iii", padding, 2, 2))
    return write_model(g.finish([x], [y]))


def test_it_is_the_transposed_convolution_that_litert_has() -> None:
    model = read_model(upsampling())
    assert use_standard_operators(model.main) == 1
    (op,) = model.main.operators
    assert op.code == "TRANSPOSE_CONV" and model.main.tensors[op.inputs[0]].data.tolist() == [1, 10, 10, 3]
    (found,) = LiteRtRunner(write_model(model)).run([IMAGES[0]]).outputs.values()
    # A kernel as large as the stride: each pixel of the input makes 2 x 2 of the output.
    wanted = np.einsum("byxi,ohwi->byhxwo", IMAGES[0], WEIGHTS).reshape(1, 10, 10, 3)
    assert np.allclose(found, wanted + np.array([1, -2, 0.5]), atol=1e-5)


def test_parameters_that_say_nothing_known_are_left_alone() -> None:
    model = read_model(upsampling(padding=7))
    assert use_standard_operators(model.main) == 0 and model.main.operators[0].code == "CUSTOM"


def test_a_model_with_it_is_quantized() -> None:
    program = on.compile(upsampling(), calibration=list(IMAGES))
    assert program.report.totals.operators_converted == program.report.totals.operators_total == 1
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 25
