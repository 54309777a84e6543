"""Weights of 4 bits at 0 LSB: LiteRT's INT4 tensors, and INT8 ones whose groups of inputs have a factor each."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.litert import DType
from openneutron.litert.grouped_weights import quantize_groups
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode.decode import decode
from openneutron.microcode.graph_op import blocks_of
from openneutron.microcode.table import Storage
from openneutron.options import Options
from tests.golden import ModelMaker, refusal, spread

WEIGHTS = {
    "FULLY_CONNECTED": (12, 40), "CONV_2D": (12, 3, 3, 10), "1x1": (9, 1, 1, 33), "DEPTHWISE_CONV_2D": (1, 3, 3, 10),
}  # fmt: skip


def add_layer(maker: ModelMaker, kind: str, dtype: DType, zero: int = 0) -> None:
    """A layer with INT4 weights of every value, a scale per channel, and a bias."""
    code, shape = "CONV_2D" if kind == "1x1" else kind, WEIGHTS[kind]
    channels, axis = (shape[3], 3) if code == "DEPTHWISE_CONV_2D" else (shape[0], 0)
    wide = dtype is DType.INT16
    x_scale, scales = 2.0**-8, maker.rng.uniform(0.01, 0.03, channels).astype(np.float32)
    x_zero = 0 if wide else 5
    flat = code == "FULLY_CONNECTED"
    x = maker.input((3, shape[1]) if flat else (1, 6, 5, shape[3]), dtype, x_scale, x_zero)
    w = maker.constant(maker.rng.integers(-8, 8, shape), DType.INT4, scales, [zero] * channels, axis)
    bias_scales = [float(np.float32(x_scale * float(one))) for one in scales]
    kind_of_bias = DType.INT64 if wide else DType.INT32
    bias = maker.constant(maker.rng.integers(-3000, 3000, channels), kind_of_bias, bias_scales, 0)
    scale = spread(x_scale, 0.02, int(np.prod(shape[1:])), 1.0) / 16
    y = maker.output((3, channels) if flat else (1, 6, 5, channels), dtype, scale, 0 if wide else -3)
    window = {} if flat else {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    depth = {"depth_multiplier": 1} if code == "DEPTHWISE_CONV_2D" else {}
    maker.op(code, [x, w, bias], y, **window, **depth)


LAYERS = [
    (kind, dtype) for kind in WEIGHTS for dtype in (DType.INT8, DType.INT16) if kind[0] != "D" or dtype is DType.INT8
]


@pytest.mark.parametrize(("kind", "dtype"), LAYERS, ids=str)
@pytest.mark.parametrize("target", ["imxrt700", "imx95"])
def test_int4_tensors_as_litert_reads_them(kind: str, dtype: DType, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    for _ in range(2):
        add_layer(maker, kind, dtype)
    maker.check(target)


def test_depth_wise_int4_weights_of_16_bit_activations_are_refused() -> None:
    """LiteRT reads them as if they were INT8."""
    maker = ModelMaker(np.random.default_rng(0))
    add_layer(maker, "DEPTHWISE_CONV_2D", DType.INT16)
    assert "weights are int4, the input is int16" in refusal(maker.model())


def test_int4_weights_with_a_zero_point_are_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_layer(maker, "CONV_2D", DType.INT8, zero=1)
    assert "zero point other than 0" in refusal(maker.model())


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16], ids=str)
@pytest.mark.parametrize("group", [32, 128, 0])
def test_grouped_weights_are_stored_in_four_bits_and_computed_exactly(dtype: DType, group: int) -> None:
    maker = ModelMaker(np.random.default_rng(1))
    real = maker.rng.standard_normal((24, 256)).astype(np.float32)
    values, scales = quantize_groups(real, group)
    x = maker.input((2, 256), dtype, 0.02, 0)
    y = maker.output((2, 24), dtype, 0.5 if dtype is DType.INT8 else 0.01, 0)
    maker.op("FULLY_CONNECTED", [x, maker.constant(values, DType.INT8, scales, 0)], y)
    maker.check()
    graph = read_model(convert(write_model(maker.model()), Options()).model).main
    blocks = blocks_of(graph, graph.operators[0], outputs=1)
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    (section,) = [one for one in program.sections if one.plain >= values.size]
    assert section.storage is (Storage.GROUPS if group else Storage.STATIC)
    assert 8 * section.stored < 4.5 * values.size
