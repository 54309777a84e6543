"""Models that mutation starts from: between them every operator the compiler knows, in its plainest form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from openneutron.litert import write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from tests import tiny
from tests.compiler.networks import random_network
from tests.litert.samples import SAMPLES
from tests.loops import Loop
from tests.stateful import Lstm, Svdf
from tests.streaming import running_sum, streaming_convnet

SHAPE = (1, 6, 6, 4)
_INT32 = 2  # of the schema's TensorType
LARGEST = 1 << 20  # bytes: a larger real model costs too much time per mutant to find anything


class _Operators:
    """Single operators with inputs and outputs of their own, gathered into one model."""

    def __init__(self, dtype: DType = DType.INT8) -> None:
        self.dtype = dtype
        self.g = GraphBuilder()
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.rng = np.random.default_rng(0)

    def x(self, shape: tuple[int, ...] = SHAPE) -> int:
        self.inputs.append(self.g.tensor(f"in{len(self.inputs)}", shape, self.dtype, self.scale(), 0))
        return self.inputs[-1]

    def const(self, data: Any, dtype: DType = DType.INT32, **quantization: Any) -> int:
        array = np.asarray(data)
        return self.g.tensor(f"c{len(self.g.graph.tensors)}", array.shape, dtype, data=array, **quantization)

    def scale(self, of_bytes: float = 0.05) -> float:
        """Scales of INT16 are finer by eight bits."""
        return of_bytes / 256 if self.dtype is DType.INT16 else of_bytes

    def weights(self, *shape: int) -> int:
        if self.dtype is DType.UINT8:
            data = self.rng.integers(119, 137, shape, dtype=np.uint8)
            return self.const(data, DType.UINT8, scale=0.01, zero_point=128)
        return self.const(self.rng.integers(-9, 9, shape, dtype=np.int8), DType.INT8, scale=0.01, zero_point=0)

    def operand(self, *shape: int) -> int:
        """A constant of the activations' type."""
        if self.dtype is not DType.INT16:
            return self.weights(*shape)
        return self.const(self.rng.integers(-2304, 2304, shape, dtype=np.int16), self.dtype, scale=0.0001, zero_point=0)

    def bias(self, count: int) -> int:
        dtype = DType.INT64 if self.dtype is DType.INT16 else DType.INT32
        return self.const(np.arange(count), dtype, scale=self.scale() * 0.01, zero_point=0)

    def op(
        self, code: str, inputs: list[int], *shapes: tuple[int, ...], scale: float = 0.05, zero: int = 0, **options: Any
    ) -> None:
        if self.dtype is DType.INT16:
            scale, zero = (2.0**-15 if code in ("LOGISTIC", "TANH", "SOFTMAX") else scale / 256), 0
        elif self.dtype is DType.UINT8 and zero:
            zero += 128
        made = [self.g.tensor(f"{code}{n}", s, self.dtype, scale, zero) for n, s in enumerate(shapes or (SHAPE,))]
        self.g.op(code, inputs, made, **options)
        self.outputs += made

    def indices(self, code: str, inputs: list[int], shape: tuple[int, ...]) -> None:
        self.outputs.append(self.g.tensor(f"{code} indices", shape, DType.INT32))
        self.g.op(code, inputs, self.outputs[-1:], output_type=_INT32)


def _functions(m: _Operators) -> None:
    for code in (
        "ABS",
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "RELU_0_TO_1",
        "HARD_SWISH",
        "EXP",
        "SQRT",
        "RSQRT",
        "LOG",
        "ELU",
        "NEG",
    ):
        m.op(code, [m.x()])
    m.op("LOGISTIC", [m.x()], scale=1 / 256, zero=-128)
    m.op("TANH", [m.x()], scale=1 / 128)
    m.op("LEAKY_RELU", [m.x()], alpha=0.1)
    m.op("GELU", [m.x()], approximate=False)
    m.op("SOFTMAX", [m.x()], scale=1 / 256, zero=-128, beta=1.0)
    m.op("PRELU", [m.x(), m.operand(1, 1, 4)])
    m.op("QUANTIZE", [m.x()], scale=0.1, zero=3)


def _joins(m: _Operators) -> None:
    for code in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
        m.op(code, [m.x(), m.x()])
        m.op(code, [m.x(), m.operand(4)])
    m.op("CONCATENATION", [m.x(), m.x()], (1, 6, 6, 8), axis=3)
    m.op("PACK", [m.x((4, 3)), m.x((4, 3))], (2, 4, 3), values_count=2, axis=0)
    m.op("BATCH_MATMUL", [m.x((2, 3, 4)), m.x((2, 4, 5))], (2, 3, 5), adj_x=False, adj_y=False)
    m.op("DIV", [m.x(), m.const([100], m.dtype, scale=m.scale(), zero_point=0)])


def _movers(m: _Operators) -> None:
    m.op("RESHAPE", [m.x(), m.const([1, 144])], (1, 144), new_shape=[1, 144])
    m.op("TRANSPOSE", [m.x(), m.const([0, 2, 1, 3])])
    m.op("SQUEEZE", [m.x((1, 6, 1, 4))], (1, 6, 4), squeeze_dims=[2])
    m.op("EXPAND_DIMS", [m.x((6, 4)), m.const([0])], (1, 6, 4))
    m.op("SLICE", [m.x(), m.const([0, 1, 1, 0]), m.const([1, 3, 4, 2])], (1, 3, 4, 2))
    m.op("STRIDED_SLICE", [m.x(), m.const([0, 0, 1, 0]), m.const([1, 6, 5, 4]), m.const([1, 2, 1, 1])], (1, 3, 4, 4))
    m.op("SPLIT", [m.const(3), m.x()], (1, 6, 6, 2), (1, 6, 6, 2), num_splits=2)
    m.op("SPLIT_V", [m.x(), m.const([1, 3]), m.const(3)], (1, 6, 6, 1), (1, 6, 6, 3), num_splits=2)
    m.op("UNPACK", [m.x((2, 3, 4))], (3, 4), (3, 4), num=2, axis=0)
    m.op("TILE", [m.x(), m.const([1, 2, 1, 1])], (1, 12, 6, 4))
    m.op("GATHER", [m.x(), m.const([0, 2, 1])], (1, 3, 6, 4), axis=1, batch_dims=0)
    m.op("GATHER_ND", [m.x(), m.const([[0, 2], [0, 1]])], (2, 6, 4))
    m.op("EMBEDDING_LOOKUP", [m.const([0, 2, 1]), m.x((4, 6, 4))], (3, 6, 4))
    m.op("DYNAMIC_UPDATE_SLICE", [m.x(), m.x((1, 2, 6, 4)), m.const([0, 3, 0, 0])])
    pads = m.const([[0, 0], [1, 2], [1, 0], [0, 0]])
    m.op("PAD", [m.x(), pads], (1, 9, 7, 4))
    m.op("PADV2", [m.x(), pads, m.const(m.dtype.numpy.type(5), m.dtype, scale=m.scale(), zero_point=0)], (1, 9, 7, 4))
    m.op("MIRROR_PAD", [m.x(), pads], (1, 9, 7, 4), mode="REFLECT")
    m.op("DEPTH_TO_SPACE", [m.x()], (1, 12, 12, 1), block_size=2)
    m.op("SPACE_TO_DEPTH", [m.x()], (1, 3, 3, 16), block_size=2)
    m.op("SPACE_TO_BATCH_ND", [m.x(), m.const([2, 2]), m.const([[0, 0], [0, 0]])], (4, 3, 3, 4))
    m.op("BATCH_TO_SPACE_ND", [m.x((4, 3, 3, 2)), m.const([2, 2]), m.const([[0, 0], [0, 0]])], (1, 6, 6, 2))
    for code in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
        m.op(code, [m.x(), m.const([12, 12])], (1, 12, 12, 4), align_corners=False, half_pixel_centers=True)


def _windows(m: _Operators) -> None:
    stride = {"stride_h": 1, "stride_w": 1}
    undilated = {"dilation_h_factor": 1, "dilation_w_factor": 1}
    bias = m.bias(8)
    m.op("CONV_2D", [m.x(), m.weights(8, 3, 3, 4), bias], (1, 6, 6, 8), padding="SAME", **stride, **undilated)
    m.op("CONV_2D", [m.x(), m.weights(8, 3, 3, 2), bias], (1, 6, 6, 8), padding="SAME", **stride, **undilated)
    m.op("DEPTHWISE_CONV_2D", [m.x(), m.weights(1, 3, 3, 8), bias], (1, 4, 4, 8), padding="VALID", depth_multiplier=2,
         **stride, **undilated)  # fmt: skip
    m.op("TRANSPOSE_CONV", [m.const([1, 12, 12, 3]), m.weights(3, 2, 2, 4), m.x()], (1, 12, 12, 3), padding="SAME",
         stride_h=2, stride_w=2)  # fmt: skip
    for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        m.op(code, [m.x()], (1, 3, 3, 4), padding="VALID", stride_h=2, stride_w=2, filter_height=2, filter_width=2)
    m.op("FULLY_CONNECTED", [m.x((2, 16)), m.weights(5, 16), -1], (2, 5))
    for code in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        m.op(code, [m.x(), m.const([1, 2])], (1, 4), keep_dims=False)
    for code in ("ARG_MAX", "ARG_MIN"):
        m.indices(code, [m.x(), m.const(3)], (1, 6, 6))


def _operators(fill: Callable[[_Operators], None], dtype: DType = DType.INT8) -> Model:
    made = _Operators(dtype)
    fill(made)
    return made.g.finish(made.inputs, made.outputs)


_PLAIN = (_functions, _joins, _movers, _windows)


def plain_operators(dtype: DType) -> list[Model]:
    """Every operator in its plainest form, on activations of this type."""
    return [_operators(fill, dtype) for fill in _PLAIN]


@cache
def seeds(folder: str = "") -> dict[str, bytes]:
    """Name → bytes of every model to mutate; `folder` adds the small .tflite files of a folder."""
    found = {f.__name__.strip("_"): write_model(_operators(f)) for f in _PLAIN}
    found |= {make.__name__: make() for make in (tiny.convnet, tiny.sandwich, tiny.floats)}
    found |= {f"sample {name}": write_model(make()) for name, make in SAMPLES.items()}
    found |= {f"network {seed}": random_network(seed)[0] for seed in range(8)}
    found |= {"lstm": Lstm(normalize=True, peephole=True, project=True).model(), "svdf": Svdf().model()}
    found |= {"states": streaming_convnet(), "state across the CPU": running_sum(through_cpu=True)}
    found |= {"loop": Loop(rows=4).data(), "loop of slices": Loop(rows=4, writes="concat", reads="slice").data()}
    if folder:
        files = sorted(Path(folder).glob("*.tflite"))
        found |= {file.name: file.read_bytes() for file in files if file.stat().st_size <= LARGEST}
    return found
