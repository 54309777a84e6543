"""Seeds for the fuzz targets: small models, compiled for every target, that between them call every
kernel and have constants of every form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from openneutron import __version__
from openneutron.convert import convert
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Quantization
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.microcode import abi
from openneutron.microcode.decode import decode
from openneutron.microcode.encode import encode_blocks
from openneutron.microcode.graph_op import Compiled, blocks_of
from openneutron.microcode.instructions import StateRow
from openneutron.microcode.payload import build_payload
from openneutron.microcode.table import ALIGNMENT, Storage
from openneutron.microcode.walk import executed_calls
from openneutron.options import Options
from tests import tiny
from tests.microcode.test_mutation import CASES
from tests.stateful import Lstm, Svdf

INT8, INT32 = DType.INT8, DType.INT32


def _rest() -> bytes:
    """The kernels that the mutation test's models leave out."""
    g = GraphBuilder()
    shape = (1, 4, 4, 3)
    x = g.tensor("x", shape, INT8, scale=0.05, zero_point=3)
    y = g.tensor("y", shape, INT8, scale=0.04, zero_point=-7)
    squared = g.tensor("squared", shape, INT8, scale=0.1, zero_point=0)
    g.op("SQUARED_DIFFERENCE", [x, y], [squared])
    largest = g.tensor("largest", (1, 4, 4), INT32)
    g.op("ARG_MAX", [x, g.tensor("axis", (1,), INT32, data=[3])], [largest], output_type=2)
    indices = g.tensor("indices", (3,), INT32)
    picked = g.tensor("picked", (1, 3, 4, 3), INT8, scale=0.05, zero_point=3)
    g.op("GATHER", [x, indices], [picked], axis=1, batch_dims=0)
    update = g.tensor("update", (1, 2, 4, 3), INT8, scale=0.05, zero_point=3)
    starts = g.tensor("starts", (4,), INT32)
    updated = g.tensor("updated", shape, INT8, scale=0.05, zero_point=3)
    g.op("DYNAMIC_UPDATE_SLICE", [x, update, starts], [updated])
    return write_model(g.finish([x, y, indices, update, starts], [squared, largest, picked, updated]))


def _streamed_pool() -> bytes:
    """A convolution into a global pool: with little memory the sums are kept as rows pass by."""
    rng = np.random.default_rng(6)
    g = GraphBuilder()
    x = g.tensor("x", (1, 16, 16, 8), INT8, scale=0.05, zero_point=3)
    w = g.tensor("w", (8, 3, 3, 8), INT8, scale=0.01, data=rng.integers(-127, 128, (8, 3, 3, 8)))
    b = g.tensor("b", (8,), INT32, scale=0.0005, data=rng.integers(-99, 99, 8))
    y = g.tensor("y", (1, 16, 16, 8), INT8, scale=0.1, zero_point=0)
    g.op("CONV_2D", [x, w, b], [y], stride_w=1, stride_h=1, padding="SAME")
    axes = g.tensor("axes", (2,), INT32, data=[1, 2])
    z = g.tensor("z", (1, 1, 1, 8), INT8, scale=0.1, zero_point=0)
    g.op("MEAN", [y, axes], [z], keep_dims=True)
    return write_model(g.finish([x], [z]))


def _wide() -> bytes:
    """Rows and channels long enough for the vector loops, with remainders."""
    rng = np.random.default_rng(9)
    g = GraphBuilder()
    x = g.tensor("x", (1, 9, 19, 20), INT8, scale=0.05, zero_point=3)
    w = g.tensor("w", (40, 1, 1, 20), INT8, scale=0.01, data=rng.integers(-127, 128, (40, 1, 1, 20)))
    b = g.tensor("b", (40,), INT32, scale=0.0005, data=rng.integers(-99, 99, 40))
    y = g.tensor("y", (1, 9, 19, 40), INT8, scale=0.1, zero_point=0)
    window = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    g.op("CONV_2D", [x, w, b], [y], **window)
    deep = g.tensor("deep", (1, 3, 3, 40), INT8, scale=0.01, data=rng.integers(-127, 128, (1, 3, 3, 40)))
    z = g.tensor("z", (1, 9, 19, 40), INT8, scale=0.1, zero_point=4)
    g.op("DEPTHWISE_CONV_2D", [y, deep, g.tensor("c", (40,), INT32, scale=0.001, data=range(40))], [z],
         depth_multiplier=1, **window)  # fmt: skip
    total = g.tensor("total", (1, 9, 19, 40), INT8, scale=0.2, zero_point=-3)
    g.op("ADD", [y, z], [total])
    pooled = g.tensor("pooled", (1, 9, 19, 40), INT8, scale=0.2, zero_point=-3)
    g.op("AVERAGE_POOL_2D", [total], [pooled], filter_width=3, filter_height=3, **window)
    curved = g.tensor("curved", (1, 9, 19, 40), INT8, scale=1 / 128, zero_point=0)
    g.op("TANH", [pooled], [curved])
    return write_model(g.finish([x], [curved]))


def _coded() -> bytes:
    """Weights of every code: small ones (Rice), many zeros (static), those of a depthwise convolution."""
    rng = np.random.default_rng(12)
    g = GraphBuilder()
    window = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    forms = {
        "rice": np.rint(rng.laplace(0, 4, (20, 1, 1, 20))),
        "static": rng.integers(-3, 4, (20, 3, 3, 20)) * (rng.random((20, 3, 3, 20)) < 0.2),
    }
    x = g.tensor("x", (1, 4, 5, 20), INT8, scale=0.05, zero_point=3)
    last = x
    for name, data in forms.items():
        w = g.tensor(name, data.shape, INT8, scale=0.01, data=data.clip(-127, 127))
        b = g.tensor(f"{name} bias", (20,), INT32, scale=0.0005, data=rng.integers(-99, 99, 20))
        y = g.tensor(f"{name} output", (1, 4, 5, 20), INT8, scale=0.05, zero_point=3)
        g.op("CONV_2D", [last, w, b], [y], **window)
        last = y
    deep = g.tensor("deep", (1, 3, 3, 20), INT8, scale=0.01, data=rng.integers(-2, 3, (1, 3, 3, 20)))
    z = g.tensor("z", (1, 4, 5, 20), INT8, scale=0.1, zero_point=4)
    g.op("DEPTHWISE_CONV_2D", [last, deep, g.tensor("c", (20,), INT32, scale=0.0005, data=range(20))], [z],
         depth_multiplier=1, **window)  # fmt: skip
    return write_model(g.finish([x], [z]))


def _grouped() -> bytes:
    """4-bit weights with a factor for each group of inputs."""
    rng = np.random.default_rng(13)
    g = GraphBuilder()
    factors = rng.integers(6, 17, (24, 8)).repeat(32, axis=1)
    weights = np.clip(np.rint(rng.normal(0, 3, (24, 256))), -7, 7) * factors
    x = g.tensor("x", (1, 256), INT8, scale=0.05, zero_point=3)
    y = g.tensor("y", (1, 24), INT8, scale=0.5, zero_point=3)
    g.op("FULLY_CONNECTED", [x, g.tensor("w", weights.shape, INT8, scale=0.01, data=weights)], [y])
    return write_model(g.finish([x], [y]))


def _int16() -> bytes:
    """Every kernel of 16-bit activations."""
    rng = np.random.default_rng(11)
    g = GraphBuilder()
    count = 0

    def tensor(shape: tuple[int, ...], scale: float = 0.0003) -> int:
        nonlocal count
        count += 1
        return g.tensor(f"t{count}", shape, DType.INT16, scale=scale, zero_point=0)

    def weights(shape: tuple[int, ...], outputs: int) -> list[int]:
        nonlocal count
        count += 1
        w = g.tensor(f"w{count}", shape, INT8, scale=0.01, data=rng.integers(-127, 128, shape))
        b = g.tensor(f"b{count}", (outputs,), DType.INT64, scale=3e-6, data=rng.integers(-99, 99, outputs))
        return [w, b]

    window = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}
    x, y, z = (tensor((1, 5, 6, 10)) for _ in range(3))
    g.op("CONV_2D", [x, *weights((10, 3, 3, 10), 10)], [y], **window)
    g.op("DEPTHWISE_CONV_2D", [y, *weights((1, 3, 3, 10), 10)], [z], depth_multiplier=1, **window)
    wide = tensor((1, 10, 12, 4))
    shape = g.tensor("shape", (4,), INT32, data=[1, 10, 12, 4])
    w, b = weights((4, 2, 2, 10), 4)
    g.op("TRANSPOSE_CONV", [shape, w, z, b], [wide], stride_w=2, stride_h=2, padding="SAME")
    total = tensor((1, 5, 6, 10), 0.0007)
    g.op("ADD", [y, z], [total])
    curved, dense, answer = tensor((1, 5, 6, 10), 2**-15), tensor((30, 7)), tensor((30, 7), 2**-15)
    g.op("TANH", [total], [curved])
    rows = g.tensor("rows", (2,), INT32, data=[30, 10])
    flat = tensor((30, 10), 2**-15)
    g.op("RESHAPE", [curved, rows], [flat], new_shape=[30, 10])
    w, b = weights((7, 10), 7)
    g.graph.tensors[b].quantization = Quantization((2**-15 * 0.01,), (0,))
    g.op("FULLY_CONNECTED", [flat, w, b], [dense])
    g.op("SOFTMAX", [dense], [answer], beta=1.0)
    return write_model(g.finish([x], [answer, wide]))


MODELS = {
    **CASES,
    "convnet": (tiny.convnet, {"target": "imxrt700"}),
    "wide": (_wide, {"target": "imxrt700"}),
    "wide_neutron_s": (_wide, {"target": "imx95"}),
    "rest": (_rest, {"target": "imxrt700"}),
    "rest_neutron_s": (_rest, {"target": "imx95"}),
    "int16": (_int16, {"target": "imxrt700"}),
    "int16_neutron_s": (_int16, {"target": "imx95"}),
    "coded": (_coded, {"target": "imxrt700"}),
    "coded_neutron_s": (_coded, {"target": "imx95"}),
    "coded_prefetch": (_coded, {"target": "mcxn94x", "fetch_constants_to_sram": True}),
    "grouped": (_grouped, {"target": "imxrt700"}),
    "lstm": (Lstm(normalize=True, peephole=True, project=True).model, {"target": "imxrt700"}),
    "svdf": (Svdf().model, {"target": "mcxn94x"}),
    "streamed_pool": (_streamed_pool, {"target": "imxrt700", "fit_bytes": 2400}),
}


def _with_state(blocks: Compiled) -> Compiled:
    """With state that begins as the first bytes of a coded section."""
    program = decode(blocks.microcode, blocks.weights, blocks.kernels)
    assert program.sections[0].storage is not Storage.RAW
    microcode, weights = encode_blocks(replace(program, states=(StateRow(0, 2 * ALIGNMENT, 0, 0),)))
    return blocks._replace(microcode=microcode, weights=weights)


def write_seeds(folder: Path) -> tuple[set[str], set[Storage]]:
    """Write `microcode/` and `payload/` below `folder`; return what the seeds have: the names of the kernels they call,
    and the ways in which constants are stored."""
    called: set[str] = set()
    forms: set[Storage] = set()
    for name, (make, options) in MODELS.items():
        graph = read_model(convert(make(), Options(**options)).model).main
        (op,) = graph.operators
        blocks = blocks_of(graph, op, outputs=len(graph.outputs))
        if make is _coded:
            blocks = _with_state(blocks)
        program = decode(blocks.microcode, blocks.weights, blocks.kernels)
        called |= {abi.by_id(call.kernel).name for call, _, _ in executed_calls(program)}
        forms |= {section.storage for section in program.sections}
        profiling = int(options.get("use_profiling", False))
        inputs, outputs = len(graph.inputs), len(graph.outputs)
        payload = build_payload(
            blocks.microcode, blocks.weights, blocks.kernels, [1] * inputs, [0] * outputs, range(inputs),
            range(outputs), inputs, profiling, options["target"], "open", __version__,
        )  # fmt: skip
        padded = (data + bytes(-len(data) % ALIGNMENT) for data in (blocks.microcode, blocks.weights, blocks.kernels))
        for kind, data in (("microcode", b"".join(padded)), ("payload", payload)):
            (folder / kind).mkdir(parents=True, exist_ok=True)
            (folder / kind / name).write_bytes(data)
    return called, forms
