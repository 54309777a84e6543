"""Threads over rows: the same bytes and the same cycles, however many, on whole and on streamed schedules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine.simulator import Array, Simulator
from openneutron.microcode.graph_op import blocks_of
from openneutron.options import Options

INT8, INT32 = DType.INT8, DType.INT32
IMAGE = (1, 64, 64, 24)  # every layer below does more work than the driver asks for before it shares rows
RUNS = 6  # the driver tries threads for all calls in the first ones, and no threads in those after them
WINDOW = {"stride_w": 1, "stride_h": 1, "padding": "SAME"}


def _convolutions() -> bytes:
    rng = np.random.default_rng(1)
    g = GraphBuilder()
    x = g.tensor("x", IMAGE, INT8, scale=0.05, zero_point=3)
    w = g.tensor("w", (24, 3, 3, 24), INT8, scale=0.01, data=rng.integers(-127, 128, (24, 3, 3, 24)))
    b = g.tensor("b", (24,), INT32, scale=0.0005, data=rng.integers(-99, 99, 24))
    y = g.tensor("y", IMAGE, INT8, scale=0.2, zero_point=0)
    g.op("CONV_2D", [x, w, b], [y], **WINDOW)
    deep = g.tensor("deep", (1, 3, 3, 24), INT8, scale=0.01, data=rng.integers(-127, 128, (1, 3, 3, 24)))
    c = g.tensor("c", (24,), INT32, scale=0.002, data=rng.integers(-99, 99, 24))
    z = g.tensor("z", IMAGE, INT8, scale=0.2, zero_point=4)
    g.op("DEPTHWISE_CONV_2D", [y, deep, c], [z], depth_multiplier=1, **WINDOW)
    total = g.tensor("total", IMAGE, INT8, scale=0.3, zero_point=-3)
    g.op("ADD", [y, z], [total])
    pooled = g.tensor("pooled", (1, 32, 32, 24), INT8, scale=0.3, zero_point=-3)
    half = WINDOW | {"stride_w": 2, "stride_h": 2}
    g.op("MAX_POOL_2D", [total], [pooled], filter_width=2, filter_height=2, **half)
    return write_model(g.finish([x], [pooled]))


def _layers() -> bytes:
    """The same kinds of layers, each on the input alone: nothing to stream, so every call covers its whole output."""
    rng = np.random.default_rng(3)
    g = GraphBuilder()
    x = g.tensor("x", IMAGE, INT8, scale=0.05, zero_point=3)
    made = {name: g.tensor(name, IMAGE, INT8, scale=0.2, zero_point=0) for name in ("conv", "deep", "sum")}
    w = g.tensor("w", (24, 3, 3, 24), INT8, scale=0.01, data=rng.integers(-127, 128, (24, 3, 3, 24)))
    v = g.tensor("v", (1, 5, 5, 24), INT8, scale=0.01, data=rng.integers(-127, 128, (1, 5, 5, 24)))
    b = g.tensor("b", (24,), INT32, scale=0.0005, data=rng.integers(-99, 99, 24))
    g.op("CONV_2D", [x, w, b], [made["conv"]], **WINDOW)
    g.op("DEPTHWISE_CONV_2D", [x, v, b], [made["deep"]], depth_multiplier=1, **WINDOW)
    g.op("ADD", [x, x], [made["sum"]])
    pooled = g.tensor("pooled", IMAGE, INT8, scale=0.05, zero_point=3)
    g.op("AVERAGE_POOL_2D", [x], [pooled], filter_width=5, filter_height=5, **WINDOW)
    return write_model(g.finish([x], [*made.values(), pooled]))


def _moves() -> bytes:
    """Large element-wise and rearranging operators, batch 3."""
    g = GraphBuilder()
    shape = (3, 96, 80, 50)
    x, y = (g.tensor(name, shape, INT8, scale=0.05, zero_point=3) for name in "xy")
    product = g.tensor("product", shape, INT8, scale=0.1, zero_point=0)
    g.op("MUL", [x, y], [product])
    curved = g.tensor("curved", shape, INT8, scale=1 / 256, zero_point=-128)
    g.op("LOGISTIC", [product], [curved])
    turned = g.tensor("turned", (3, 50, 96, 80), INT8, scale=1 / 256, zero_point=-128)
    g.op("TRANSPOSE", [curved, g.tensor("order", (4,), INT32, data=[0, 3, 1, 2])], [turned])
    wide = g.tensor("wide", (3, 192, 160, 50), INT8, scale=0.1, zero_point=0)
    g.op("RESIZE_NEAREST_NEIGHBOR", [product, g.tensor("size", (2,), INT32, data=[192, 160])], [wide])
    return write_model(g.finish([x, y], [turned, wide]))


CASES: dict[str, tuple[Callable[[], bytes], dict[str, object]]] = {
    "layers": (_layers, {"target": "imxrt700"}),
    "streamed": (_convolutions, {"target": "imxrt700"}),
    "neutron_s": (_convolutions, {"target": "imx95"}),
    "moves": (_moves, {"target": "imx95"}),
}


def _run(blocks: tuple[bytes, bytes, bytes], inputs: list[Array]) -> tuple[list[Array], int]:
    with Simulator(*blocks, poison=True) as simulator:
        outputs = simulator.run(inputs)
        for _ in range(RUNS):
            assert all(np.array_equal(a, b) for a, b in zip(outputs, simulator.run(inputs), strict=True))
        return outputs, simulator.cycles


@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_the_number_of_threads(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, options = CASES[case]
    graph = read_model(convert(make(), Options(**options)).model).main  # type: ignore[arg-type]
    (op,) = graph.operators
    found = blocks_of(graph, op, outputs=len(graph.outputs))
    blocks = (found.microcode, found.weights, found.kernels)
    rng = np.random.default_rng(2)
    inputs = [rng.integers(-128, 128, graph.tensors[at].shape).astype(np.int8) for at in graph.inputs]
    monkeypatch.setenv("OPENNEUTRON_THREADS", "1")
    expected, cycles = _run(blocks, inputs)
    for threads in ("2", "4"):
        monkeypatch.setenv("OPENNEUTRON_THREADS", threads)
        outputs, same = _run(blocks, inputs)
        assert same == cycles
        assert all(np.array_equal(a, b) for a, b in zip(outputs, expected, strict=True))


def test_a_wrong_number_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_model(convert(_convolutions(), Options()).model).main
    found = blocks_of(graph, graph.operators[0], outputs=1)
    monkeypatch.setenv("OPENNEUTRON_THREADS", "many")
    with pytest.raises(RuntimeFailure, match="OPENNEUTRON_THREADS says, is not from 1 to 16"):
        Simulator(found.microcode, found.weights, found.kernels)
