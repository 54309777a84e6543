"""Small generated models that between them use every corner of the format, and a runner for the golden interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from openneutron.litert import DType, Graph, GraphBuilder, Metadata, Model, Operator, Tensor
from openneutron.litert.graph import Sparsity
from openneutron.litert.operator_options import make_options, schema

Arrays = list[npt.NDArray[Any]]


def run(data: bytes, seed: int = 0) -> Arrays:
    """Outputs of LiteRT's reference kernels on seeded random inputs."""
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        dtype = np.dtype(detail["dtype"])
        if np.issubdtype(dtype, np.integer):
            limits = np.iinfo(dtype)
            value = rng.integers(limits.min, limits.max + 1, detail["shape"]).astype(dtype)
        else:
            value = rng.standard_normal(detail["shape"]).astype(dtype)
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def convolution() -> Model:
    """Per-channel convolution, pooling, two layers sharing one weight buffer, metadata, a signature."""
    rng = np.random.default_rng(1)
    g = GraphBuilder()
    x = g.tensor("x", (1, 8, 8, 3), DType.INT8, scale=0.05, zero_point=-3)
    weights = rng.integers(-127, 128, (8, 3, 3, 3), np.int8)
    scales = rng.uniform(0.001, 0.01, 8).astype(np.float32)
    w = g.tensor("w", weights.shape, DType.INT8, scale=scales, axis=0, data=weights)
    b = g.tensor("b", (8,), DType.INT32, scale=scales * np.float32(0.05), axis=0, data=rng.integers(-99, 99, 8))
    y = g.tensor("y", (1, 8, 8, 8), DType.INT8, scale=0.1, zero_point=5)
    conv = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU"}
    g.op("CONV_2D", [x, w, b], [y], **conv)
    z = g.tensor("z", (1, 4, 4, 8), DType.INT8, scale=0.1, zero_point=5)
    g.op("MAX_POOL_2D", [y], [z], padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    dense = rng.integers(-127, 128, (10, 128), np.int8)
    outs = []
    for name in ("p", "q"):
        f = g.tensor(f"{name}w", (10, 128), DType.INT8, scale=0.01, data=dense)
        o = g.tensor(name, (1, 10), DType.INT8, scale=0.2, zero_point=1)
        g.op("FULLY_CONNECTED", [z, f, -1], [o])
        outs.append(o)
    model = g.finish([x], outs, description="sample", signature="serving_default")
    model.metadata += [Metadata("min_runtime_version", b"2.3.0"), Metadata("empty", b"")]
    return model


def quantize_and_scalars() -> Model:
    """UINT8 input, rank-0 and zero-sized constants, reshape with a stored shape, float output, a dynamic batch."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.UINT8, scale=0.1, zero_point=128)
    g.graph.tensors[x].shape_signature = (-1, 6)
    a = g.tensor("a", (1, 6), DType.INT8, scale=0.1, zero_point=0)
    g.op("QUANTIZE", [x], [a])
    shape = g.tensor("shape", (2,), DType.INT32, data=[2, 3])
    r = g.tensor("r", (2, 3), DType.INT8, scale=0.1, zero_point=0)
    g.op("RESHAPE", [a, shape], [r], new_shape=[2, 3])
    axis = g.tensor("axis", (), DType.INT32, data=1)
    parts = [g.tensor(f"part{i}", (2, 1), DType.INT8, scale=0.1, zero_point=0) for i in range(3)]
    g.op("SPLIT", [axis, r], parts, num_splits=3)
    none = g.tensor("none", (0,), DType.INT32, data=[])
    same = g.tensor("same", (2, 1), DType.INT8, scale=0.1, zero_point=0)
    g.op("SUM", [parts[0], none], [same], keep_dims=True)
    f = g.tensor("f", (2, 1), DType.FLOAT32)
    g.op("DEQUANTIZE", [parts[1]], [f])
    return g.finish([x], [f, parts[2]])


def branches() -> Model:
    """IF over two extra graphs, and a constant output."""

    def branch(name: str, code: str) -> Graph:
        tensors = [Tensor(n, (2,), DType.FLOAT32) for n in ("u", "v")]
        return Graph(name, tensors, [Operator(code, [0], [1], options=make_options(code, {}))], [0], [1])

    g = GraphBuilder()
    x = g.tensor("x", (2,), DType.FLOAT32)
    yes = g.tensor("yes", (), DType.BOOL, data=np.array(True))
    y = g.tensor("y", (2,), DType.FLOAT32)
    op = g.op("IF", [yes, x], [y])
    op.options.thenSubgraphIndex, op.options.elseSubgraphIndex = 1, 2
    g.graph.inputs, g.graph.outputs = [x], [y]
    return Model([g.graph, branch("then", "ABS"), branch("else", "NEG")])


def states() -> Model:
    """A variable tensor, an operator with intermediates, mutated inputs and absent optional ones (float SVDF)."""
    rng = np.random.default_rng(2)
    g = GraphBuilder()
    x = g.tensor("x", (1, 3), DType.FLOAT32)
    feature = g.tensor("feature", (2, 3), DType.FLOAT32, data=rng.standard_normal((2, 3)).astype(np.float32))
    time = g.tensor("time", (2, 4), DType.FLOAT32, data=rng.standard_normal((2, 4)).astype(np.float32))
    state = g.tensor("state", (1, 8), DType.FLOAT32)
    g.graph.tensors[state].is_variable = True
    y = g.tensor("y", (1, 2), DType.FLOAT32)
    op = g.op("SVDF", [x, feature, time, -1, state], [y], version=1, rank=1, fused_activation_function="RELU")
    op.mutating_variable_inputs = [False, False, False, False, True]
    return g.finish([x], [y])


def custom() -> Model:
    """A custom operator, an operator whose number does not fit the old byte, strings, packed and exotic types."""
    g = GraphBuilder("other")
    x = g.tensor("x", (1, 4), DType.INT8, scale=0.5, zero_point=0)
    blob = g.tensor("blob", (5,), DType.UINT8, data=[1, 2, 3, 4, 5])
    four = g.tensor("four", (7,), DType.INT4, scale=0.5, data=[-8, 7, 0, 1, -1, 3, -4])
    two = g.tensor("two", (5,), DType.INT2, data=[-2, -1, 0, 1, -2])
    nibble = g.tensor("nibble", (3,), DType.UINT4, data=[15, 0, 9])
    text = g.tensor("text", (1,), DType.STRING, data=np.frombuffer(b"\1\0\0\0\x0c\0\0\0\x0e\0\0\0hi", np.uint8))
    half = g.tensor("half", (2,), DType.FLOAT16, data=np.array([1.5, -2], np.float16))
    wide = g.tensor("wide", (2,), DType.COMPLEX64, data=np.array([1 + 2j, 3], np.complex64))
    y = g.tensor("y", (1, 4), DType.INT8, scale=0.5, zero_point=0)
    g.custom("SomebodyElses", [x, blob, four, two, nibble, text, half, wide], [y], b"\x01options")
    z = g.tensor("z", (1, 4), DType.INT8, scale=0.5, zero_point=0)
    g.op("GELU", [y], [z], approximate=True)
    g.op("RELU_0_TO_1", [z], [g.tensor("end", (1, 4), DType.INT8, scale=0.5, zero_point=0)])
    return g.finish([x], [z + 1])


def sparse() -> Model:
    """A fully connected layer whose float weights are stored sparse (dense rows, CSR columns)."""
    s = schema()
    g = GraphBuilder()
    x = g.tensor("x", (1, 4), DType.FLOAT32)
    w = g.tensor("w", (3, 4), DType.FLOAT32, data=np.zeros((3, 4), np.float32))
    y = g.tensor("y", (1, 3), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [x, w, -1], [y], version=8)
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, -5]], np.float32)
    parameters = s.SparsityParametersT(
        traversalOrder=np.array([0, 1], np.int32),
        dimMetadata=[
            s.DimensionMetadataT(format=0, denseSize=3),
            s.DimensionMetadataT(
                format=1,
                arraySegmentsType=1,
                arraySegments=s.Int32VectorT(np.array([0, 1, 1, 3], np.int32)),
                arrayIndicesType=3,
                arrayIndices=s.Uint8VectorT(np.array([1, 0, 3], np.uint8)),
            ),
        ],
    )
    tensor = g.graph.tensors[w]
    tensor.data = dense
    tensor.sparsity = Sparsity(np.array([2, 1, -5], np.float32).view(np.uint8), parameters)
    return g.finish([x], [y])


SAMPLES: dict[str, Callable[[], Model]] = {
    "convolution": convolution,
    "quantize_and_scalars": quantize_and_scalars,
    "branches": branches,
    "states": states,
    "custom": custom,
    "sparse": sparse,
}
# LiteRT has no kernel for a custom operator.
RUNNABLE = {name: make for name, make in SAMPLES.items() if name != "custom"}
