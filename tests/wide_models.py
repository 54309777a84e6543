"""The operators of 16-bit activations: a small INT16 model of each, from which the table in docs/int16.md is made.

`tests/compiler/test_wide_operators.py` compiles each for every chip; an operator is on the page because it stands here.

Example:
    >>> maker = ModelMaker(np.random.default_rng(0))
    >>> MODELS["TANH"](maker)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from openneutron.litert.graph import DType

WIDE = DType.INT16
IMAGE = (1, 4, 4, 3)
SCALE = 2.0**-10
PROBABILITY = 2.0**-15
Maker = Any  # tests.golden.ModelMaker, which needs LiteRT: making the page does not
Build = Callable[[Maker], None]


def _same(code: str, shape: Sequence[int], out: Sequence[int], *constants: Sequence[int], **options: Any) -> Build:
    """An operator that keeps its input's scale; constants are numbers such as axes, sizes and paddings."""

    def build(maker: Maker) -> None:
        given = [maker.constant(np.asarray(one), DType.INT32) for one in constants]
        maker.op(code, [maker.input(shape, WIDE, SCALE, 0), *given], maker.output(out, WIDE, SCALE, 0), **options)

    return build


def _function(code: str, scale: float, **options: Any) -> Build:
    """A function of one element, or of a row of them."""

    def build(maker: Maker) -> None:
        maker.op(code, [maker.input((2, 9), WIDE, SCALE, 0)], maker.output((2, 9), WIDE, scale, 0), **options)

    return build


def _pair(code: str, scales: tuple[float, float, float] = (SCALE, SCALE, SCALE), **options: Any) -> Build:
    """An operator on two tensors of one shape."""

    def build(maker: Maker) -> None:
        sides = [maker.input(IMAGE, WIDE, scale, 0) for scale in scales[:2]]
        maker.op(code, sides, maker.output(IMAGE, WIDE, scales[2], 0), **options)

    return build


def _weights(maker: Maker, shape: Sequence[int], axis: int = 0) -> tuple[int, int]:
    """INT8 weights per channel, and biases of 64 bits."""
    channels = shape[axis]
    scales = np.linspace(0.01, 0.02, channels).astype(np.float32)
    weights = maker.constant(maker.rng.integers(-127, 128, shape), DType.INT8, scales, axis=axis)
    return weights, maker.constant(maker.rng.integers(-99, 99, channels), DType.INT64, scales * np.float32(SCALE))


def _convolution(maker: Maker) -> None:
    x = maker.input(IMAGE, WIDE, SCALE, 0)
    maker.op("CONV_2D", [x, *_weights(maker, (5, 3, 3, 3))], maker.output((1, 4, 4, 5), WIDE, 0.01, 0), padding="SAME",
             stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip


def _depthwise(maker: Maker) -> None:
    x = maker.input(IMAGE, WIDE, SCALE, 0)
    maker.op("DEPTHWISE_CONV_2D", [x, *_weights(maker, (1, 3, 3, 3), 3)], maker.output(IMAGE, WIDE, 0.01, 0),
             padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip


def _transposed(maker: Maker) -> None:
    shape = maker.constant(np.array([1, 8, 8, 5]), DType.INT32)
    weights, bias = _weights(maker, (5, 2, 2, 3))
    x = maker.input(IMAGE, WIDE, SCALE, 0)
    maker.op("TRANSPOSE_CONV", [shape, weights, x, bias], maker.output((1, 8, 8, 5), WIDE, 0.01, 0), padding="SAME",
             stride_h=2, stride_w=2)  # fmt: skip


def _connected(maker: Maker) -> None:
    weights = maker.constant(maker.rng.integers(-127, 128, (4, 9)), DType.INT8, 0.01, 0)
    bias = maker.constant(maker.rng.integers(-99, 99, 4), DType.INT64, 0.01 * SCALE, 0)
    maker.op(
        "FULLY_CONNECTED", [maker.input((2, 9), WIDE, SCALE, 0), weights, bias], maker.output((2, 4), WIDE, 0.01, 0)
    )


def _product(maker: Maker) -> None:
    sides = [maker.input(shape, WIDE, SCALE, 0) for shape in ((1, 3, 4), (1, 4, 5))]
    maker.op("BATCH_MATMUL", sides, maker.output((1, 3, 5), WIDE, 0.01, 0), adj_x=False, adj_y=False)


def _quantize(maker: Maker) -> None:
    maker.op("QUANTIZE", [maker.input(IMAGE, WIDE, SCALE, 0)], maker.output(IMAGE, WIDE, 1.5 * SCALE, 0))


def _gather(maker: Maker) -> None:
    rows = maker.constant(np.array([2, 0, 3]), DType.INT32)
    maker.op("GATHER", [maker.input((4, 5), WIDE, SCALE, 0), rows], maker.output((3, 5), WIDE, SCALE, 0), axis=0)


def _gather_nd(maker: Maker) -> None:
    rows = maker.constant(np.array([[2], [0], [3]]), DType.INT32)
    maker.op("GATHER_ND", [maker.input((4, 5), WIDE, SCALE, 0), rows], maker.output((3, 5), WIDE, SCALE, 0))


def _looked_up(maker: Maker) -> None:
    rows = maker.constant(np.array([2, 0, 3]), DType.INT32)
    maker.op("EMBEDDING_LOOKUP", [rows, maker.input((4, 5), WIDE, SCALE, 0)], maker.output((3, 5), WIDE, SCALE, 0))


def _updated(maker: Maker) -> None:
    x, update = maker.input(IMAGE, WIDE, SCALE, 0), maker.input((1, 2, 3, 3), WIDE, SCALE, 0)
    starts = maker.constant(np.array([0, 1, 0, 0]), DType.INT32)
    maker.op("DYNAMIC_UPDATE_SLICE", [x, update, starts], maker.output(IMAGE, WIDE, SCALE, 0))


def _quotient(maker: Maker) -> None:
    divisor = maker.constant(np.array([3]), WIDE, SCALE, 0)
    maker.op("DIV", [maker.input(IMAGE, WIDE, SCALE, 0), divisor], maker.output(IMAGE, WIDE, SCALE, 0))


def _padded(maker: Maker) -> None:
    around = maker.constant(np.array([[0, 0], [1, 2], [0, 1], [0, 0]]), DType.INT32)
    value = maker.constant(np.array(7), WIDE, SCALE, 0)
    maker.op("PADV2", [maker.input(IMAGE, WIDE, SCALE, 0), around, value], maker.output((1, 7, 5, 3), WIDE, SCALE, 0))


def _parts(code: str, shape: Sequence[int], *, first: Sequence[int] = (), after: Sequence[Sequence[int]] = (),
           out: Sequence[int], count: int = 2, **options: Any) -> Build:  # fmt: skip
    """An operator with several outputs; constants stand before its input or behind it."""

    def build(maker: Maker) -> None:
        before = [maker.constant(np.asarray(one, np.int32), DType.INT32) for one in first]
        x = maker.input(shape, WIDE, SCALE, 0)
        behind = [maker.constant(np.asarray(one, np.int32), DType.INT32) for one in after]
        made = [maker.output(out, WIDE, SCALE, 0) for _ in range(count)]
        maker.builder.op(code, [*before, x, *behind], made, **options)

    return build


_POOL = {"padding": "VALID", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
_AROUND = ((0, 0), (1, 2), (0, 1), (0, 0))

MODELS: dict[str, Build] = {
    "ADD": _pair("ADD", (SCALE, 3 * SCALE, 5 * SCALE)),
    "AVERAGE_POOL_2D": _same("AVERAGE_POOL_2D", IMAGE, (1, 2, 2, 3), **_POOL),
    "BATCH_MATMUL": _product,
    "BATCH_TO_SPACE_ND": _same("BATCH_TO_SPACE_ND", (4, 2, 2, 3), IMAGE, (2, 2), ((0, 0), (0, 0))),
    "CONCATENATION": lambda maker: maker.op(
        "CONCATENATION", [maker.input(IMAGE, WIDE, SCALE, 0) for _ in range(2)], maker.output((1, 4, 4, 6), WIDE, SCALE, 0),
        axis=3,
    ),
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DYNAMIC_UPDATE_SLICE": _updated,
    "EMBEDDING_LOOKUP": _looked_up,
    "GATHER_ND": _gather_nd,
    "EXPAND_DIMS": _same("EXPAND_DIMS", (4, 5), (1, 4, 5), (0,)),
    "FULLY_CONNECTED": _connected,
    "GATHER": _gather,
    "LEAKY_RELU": _function("LEAKY_RELU", 1.5 * SCALE, alpha=0.1),
    "LOGISTIC": _function("LOGISTIC", PROBABILITY),
    "MAXIMUM": _pair("MAXIMUM"),
    "MAX_POOL_2D": _same("MAX_POOL_2D", IMAGE, (1, 2, 2, 3), **_POOL),
    "MEAN": _same("MEAN", IMAGE, (1, 1, 1, 3), (1, 2), keep_dims=True),
    "MINIMUM": _pair("MINIMUM"),
    "MIRROR_PAD": _same("MIRROR_PAD", IMAGE, (1, 7, 5, 3), _AROUND, mode="REFLECT"),
    "MUL": _pair("MUL", (SCALE, SCALE, 0.02)),
    "PACK": lambda maker: maker.op(
        "PACK", [maker.input((4, 5), WIDE, SCALE, 0) for _ in range(2)], maker.output((2, 4, 5), WIDE, SCALE, 0),
        axis=0, values_count=2,
    ),
    "PAD": _same("PAD", IMAGE, (1, 7, 5, 3), _AROUND),
    "PADV2": _padded,
    "QUANTIZE": _quantize,
    "REDUCE_MAX": _same("REDUCE_MAX", IMAGE, (1, 1, 1, 3), (1, 2), keep_dims=True),
    "REDUCE_MIN": _same("REDUCE_MIN", IMAGE, (1, 1, 1, 3), (1, 2), keep_dims=True),
    "RELU": _same("RELU", IMAGE, IMAGE),
    "RELU6": _same("RELU6", IMAGE, IMAGE),
    "RESHAPE": _same("RESHAPE", IMAGE, (1, 16, 3), (1, 16, 3), new_shape=[1, 16, 3]),
    "RESIZE_BILINEAR": _same("RESIZE_BILINEAR", IMAGE, (1, 8, 8, 3), (8, 8), half_pixel_centers=True),
    "RESIZE_NEAREST_NEIGHBOR": _same("RESIZE_NEAREST_NEIGHBOR", IMAGE, (1, 8, 8, 3), (8, 8)),
    "SLICE": _same("SLICE", IMAGE, (1, 2, 4, 2), (0, 1, 0, 1), (1, 2, 4, 2)),
    "SOFTMAX": _function("SOFTMAX", PROBABILITY, beta=1.0),
    "SPACE_TO_BATCH_ND": _same("SPACE_TO_BATCH_ND", IMAGE, (4, 2, 2, 3), (2, 2), ((0, 0), (0, 0))),
    "SPLIT": _parts("SPLIT", IMAGE, first=[1], out=(1, 2, 4, 3), num_splits=2),
    "SPLIT_V": _parts("SPLIT_V", IMAGE, after=((2, 2), (1,)), out=(1, 2, 4, 3), num_splits=2),
    "SQUEEZE": _same("SQUEEZE", (1, 4, 5), (4, 5), squeeze_dims=[0]),
    "STRIDED_SLICE": _same("STRIDED_SLICE", IMAGE, (1, 2, 4, 3), (0, 0, 0, 0), (1, 4, 4, 3), (1, 2, 1, 1)),
    "SUB": _pair("SUB", (SCALE, 3 * SCALE, 5 * SCALE)),
    "TANH": _function("TANH", PROBABILITY),
    "TILE": _same("TILE", (1, 2, 3), (1, 4, 3), (1, 2, 1)),
    "TRANSPOSE": _same("TRANSPOSE", IMAGE, (1, 3, 4, 4), (0, 3, 1, 2)),
    "TRANSPOSE_CONV": _transposed,
    "UNPACK": _parts("UNPACK", (2, 4, 5), out=(4, 5), num=2, axis=0),
}  # fmt: skip

# Kernels here that take no INT16, and a model that each refuses: LiteRT has no kernel to agree with, or none was written.
NARROW: dict[str, Build] = {
    **{code: _function(code, SCALE) for code in (
        "ABS", "ELU", "EXP", "GELU", "HARD_SWISH", "LOG", "NEG", "RELU_0_TO_1", "RELU_N1_TO_1", "RSQRT", "SQRT",
    )},
    **{code: _pair(code) for code in ("PRELU", "SQUARED_DIFFERENCE")},
    **{code: _same(code, IMAGE, (1, 4, 4), (3,)) for code in ("ARG_MAX", "ARG_MIN")},
    "DIV": _quotient,
    "DEPTH_TO_SPACE": _same("DEPTH_TO_SPACE", (1, 2, 2, 4), (1, 4, 4, 1), block_size=2),
    "SPACE_TO_DEPTH": _same("SPACE_TO_DEPTH", (1, 4, 4, 1), (1, 2, 2, 4), block_size=2),
    "SUM": _same("SUM", IMAGE, (1, 1, 1, 3), (1, 2), keep_dims=True),
}  # fmt: skip
