"""Blockwise INT4 weights of LiteRT files become INT8 ones with factors, which LiteRT computes to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import openneutron as on
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.operator_options import schema
from openneutron.litert.passes.join_blocks import join_blocks
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests.golden import reference

INPUTS, OUTPUTS = 256, 48
RNG = np.random.default_rng(0)
QUOTIENTS, BIAS = RNG.integers(-8, 8, (OUTPUTS, INPUTS)), RNG.normal(size=OUTPUTS)


def scales_of(block: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0.005, 0.02, (OUTPUTS, INPUTS // block)).astype(np.float32)


def blockwise(block: int, dtype: DType = DType.INT8, *, half: bool = False, floats: bool = False) -> bytes:
    """A linear layer with INT4 weights in blocks of inputs."""
    g, wide = GraphBuilder(), dtype is DType.INT16
    scales = scales_of(block)
    quantized = () if floats else (0.02, 0)
    x = g.tensor("x", (1, INPUTS), dtype, *quantized)
    kind, data = (DType.FLOAT16, scales.astype(np.float16)) if half else (DType.FLOAT32, scales)
    table = g.tensor("scales", scales.shape, kind, data=data)
    w = g.tensor("w", (OUTPUTS, INPUTS), DType.INT4, data=QUOTIENTS)
    details = schema().BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = table, 0, block
    g.graph.tensors[w].quantization_details = details
    bias = (
        None
        if floats
        else g.tensor("b", (OUTPUTS,), DType.INT64 if wide else DType.INT32, 1e-4, 0, data=np.rint(BIAS / 1e-4))
    )
    y = g.tensor("y", (1, OUTPUTS), dtype, *(() if floats else (0.002 if wide else 0.1, 0)))
    g.op("FULLY_CONNECTED", [x, w] if bias is None else [x, w, bias], [y])
    return write_model(g.finish([x], [y]))


@pytest.mark.parametrize(("block", "half"), [(32, False), (64, True), (128, False)])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16], ids=str)
def test_blocks_run_on_the_npu_as_litert_computes_the_rewritten_model(block: int, half: bool, dtype: DType) -> None:
    program = on.compile(blockwise(block, dtype, half=half), dump_intermediates=True)
    totals = program.report.totals
    assert totals.operators_total == totals.operators_converted == 1
    assert 8 * totals.weight_bytes < 4.6 * INPUTS * OUTPUTS + 8 * 24 * OUTPUTS
    assert any("factor" in note for note in program.report.notes)
    x = RNG.integers(-100, 100, (1, INPUTS)).astype(dtype.numpy)
    rewritten: Any = program.intermediates["quantized.tflite"]
    (got,), wanted = program.run(x), reference(rewritten, [x])[0]
    assert np.array_equal(np.asarray(got), wanted)
    scales = scales_of(block).astype(np.float16 if half else np.float32).astype(np.float64)
    real = 0.02 * x @ (QUOTIENTS * np.repeat(scales, block, axis=1)).T + BIAS
    step = 0.002 if dtype is DType.INT16 else 0.1
    # A block's scale becomes a multiple of its channel's, 1 to 16 times it.
    assert np.abs(wanted * step - real).max() < 0.05 * np.abs(real).max() + step


def test_layers_in_float_stay_as_they_are() -> None:
    model = read_model(blockwise(32, DType.FLOAT32, floats=True))
    assert join_blocks(model.main) == 0


def test_scales_of_another_number_are_left_alone() -> None:
    model = read_model(blockwise(32))
    model.main.tensors[model.main.operators[0].inputs[1]].quantization_details.blockSize = 48
    assert join_blocks(model.main) == 0
