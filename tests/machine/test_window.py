"""Constants decoded while a model runs, in a context too small for all of them: the same results."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.machine import driver, targets
from openneutron.machine.simulator import DTYPES, Simulator
from openneutron.machine.window import least_window
from openneutron.microcode import encode
from openneutron.microcode.decode import header_of
from openneutron.microcode.graph_op import Compiled, blocks_of, is_graph_op
from openneutron.microcode.instructions import Dma, StateRow
from openneutron.microcode.storage.sections import choose, flat
from openneutron.microcode.table import Region, Storage
from openneutron.options import Options
from tests import tiny
from tests.compiler.networks import Network
from tests.hostile import crafted

CODES = {name: word for word, name, _ in driver.errors()}


def aligned(data: bytes) -> np.ndarray:
    """A copy at a multiple of 16."""
    room = np.zeros(len(data) + 16, np.uint8)
    start = -room.ctypes.data % 16
    room[start : start + len(data)] = np.frombuffer(data, np.uint8)
    return room[start : start + len(data)]


def context_bytes(blocks: Compiled) -> int:
    """Of a context with all constants decoded."""
    size = driver.library().neutronGetModelContextSize
    size.restype, size.argtypes = ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_size_t)
    code = aligned(blocks.microcode)
    return int(size(code.ctypes.data, len(code)))


def run_in(blocks: Compiled, size: int, image: bytes, outputs: int) -> tuple[int, bytes]:
    """The driver's error word and the first output of a run in a context of `size` bytes."""
    library = driver.library()
    prepare = library.neutronModelPrepareIn
    prepare.restype, prepare.argtypes = ctypes.c_int32, (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_void_p] * 3)
    header = header_of(blocks.microcode)
    code, weights, kernels = (aligned(data) for data in (blocks.microcode, blocks.weights, blocks.kernels))
    scratch, prefetch = aligned(bytes(header["layout"][0] + 16)), aligned(bytes(header["layout"][1] + 16))
    config = driver.ModelConfig(code.ctypes.data, weights.ctypes.data, kernels.ctypes.data, 0)
    sizes = driver.ModelSizes(len(code), len(weights), len(kernels), header["layout"][0], header["layout"][1])
    context, handle = aligned(bytes(size)), ctypes.c_void_p()
    error = prepare(context.ctypes.data, size, ctypes.byref(config), ctypes.byref(sizes), ctypes.byref(handle))
    if error:
        return error, b""
    given, result = aligned(image), aligned(bytes(outputs))
    inputs = (ctypes.c_void_p * 1)(given.ctypes.data)
    places = (ctypes.c_void_p * 4)(result.ctypes.data, scratch.ctypes.data, None, None)
    data = driver.DataConfig(inputs, places, None, prefetch.ctypes.data)
    error = library.neutronRunBlocking(handle, ctypes.byref(data))
    driver.unprepare(handle)
    return error, result.tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {"target": "imxrt700"},
        {"target": "imxrt700", "fit_bytes": 600},  # a cascade: the same constants again and again
        {"target": "mcxn94x", "fetch_constants_to_sram": True},  # copies out of coded sections
        {"target": "imx95"},
    ],
    ids=str,
)
def test_a_small_context_gives_the_same_results(options: dict[str, object]) -> None:
    graph = read_model(convert(tiny.convnet(), Options(**options)).model).main  # type: ignore[arg-type]
    (op,) = graph.operators
    blocks = blocks_of(graph, op, outputs=1)
    header = header_of(blocks.microcode)
    assert 0 < header["window_bytes"] < header["plain_bytes"]
    whole = context_bytes(blocks)
    calls = whole - (header["plain_bytes"] - header["window_bytes"])
    least = whole - header["plain_bytes"] + least_window(blocks.microcode, blocks.weights, blocks.kernels)
    assert least <= calls
    image = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        expected = simulator.run([image])[0].tobytes()
    for room in (whole, whole - 16, calls, max(calls - 16, least), least):
        assert run_in(blocks, room, image.tobytes(), len(expected)) == (0, expected)
    assert run_in(blocks, least - 16, image.tobytes(), len(expected))[0] == CODES["CONTEXT_TOO_SMALL"]


def blocks_in(model: bytes, target: str) -> Iterator[Compiled]:
    graph = read_model(convert(model, Options(target=target)).model).main
    for op in graph.operators:
        if is_graph_op(op):
            yield blocks_of(graph, op, outputs=len(op.outputs))


def mixed(dtype: DType) -> bytes:
    """Convolutions of several sizes, one transposed, a linear layer; weights that code well and such that do not."""
    rng = np.random.default_rng(4)
    net = Network(rng, (1, 12, 10, 20), 0.05 / 256 if dtype is DType.INT16 else 0.05, dtype=dtype)
    g = net.g

    def weights(*shape: int) -> int:
        values = np.clip(np.rint(rng.laplace(0, 6, shape)), -127, 127).astype(np.int8)
        return g.tensor(f"narrow{len(g.graph.tensors)}", shape, DType.INT8, 0.01, 0, data=values)

    def layer(code: str, x: int, w: int, shape: tuple[int, ...], *before: int, **options: object) -> int:
        scale = net.quant[x][0]
        y = net._tensor(shape, 0.5 / 256 if net.wide else 0.5, 5)
        bias = net._bias(rng.integers(-2000, 2000, shape[-1]), scale * 0.01)
        g.op(code, [*before, *((w, x) if before else (x, w)), bias], [y], **options)
        return y

    step = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    x = net.conv(net.depthwise(layer("CONV_2D", net.input, weights(44, 3, 3, 20), (1, 12, 10, 44), **step)), 36, 1)
    size = g.tensor("size", (4,), DType.INT32, data=np.array([1, 24, 20, 24], np.int32))
    twice = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    x = layer("TRANSPOSE_CONV", x, weights(24, 3, 3, 36), (1, 24, 20, 24), size, **twice)
    x = net.reshape(net.max_pool(net.max_pool(net.conv(x, 50, 3, 2))), 1, 3 * 2 * 50)
    return net.finish(layer("FULLY_CONNECTED", x, weights(70, 300), (1, 70)))


@pytest.mark.parametrize("target", targets.chips())
@pytest.mark.parametrize("wide", [False, True], ids=["int8", "int16"])
def test_windows_of_any_size_on_a_host(wide: bool, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convolutions of several sizes, one transposed, linear layers: some blocks at a time, and threads beside them."""
    model = mixed(DType.INT16 if wide else DType.INT8)
    for blocks in blocks_in(model, target):
        given = blocks.microcode, blocks.weights, blocks.kernels
        header, least = header_of(blocks.microcode), least_window(*given)
        assert 0 < least <= header["window_bytes"] // (1 if target == "imx95" else 3)
        found = []
        for window in (None, 0, least + 1, 3 * least, header["window_bytes"], header["plain_bytes"]):
            if window is not None:
                monkeypatch.setenv("OPENNEUTRON_WINDOW", str(window))
            for threads in ("1", "2"):
                monkeypatch.setenv("OPENNEUTRON_THREADS", threads)
                with Simulator(*given, poison=True) as simulator:
                    rng = np.random.default_rng(9)
                    inputs = [rng.integers(-99, 99, t.shape).astype(DTYPES[t.dtype]) for t in simulator.inputs]
                    outputs = simulator.run(inputs)
                    assert simulator.cycles > 0
                    found.append(([one.tobytes() for one in outputs], simulator.cycles))
        assert len({str(one) for one in found}) == 1


def test_a_window_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (blocks,) = blocks_in(tiny.convnet(), "imxrt700")
    monkeypatch.setenv("OPENNEUTRON_WINDOW", "small")
    with pytest.raises(RuntimeFailure, match="OPENNEUTRON_WINDOW is not a number of bytes"):
        Simulator(blocks.microcode, blocks.weights, blocks.kernels)


def test_plain_constants_need_no_window() -> None:
    graph = read_model(convert(tiny.convnet(), Options(passes_off=("code_weights",))).model).main
    (op,) = graph.operators
    blocks = blocks_of(graph, op, outputs=1)
    assert least_window(blocks.microcode, blocks.weights, blocks.kernels) == 0


@pytest.mark.parametrize("window", [16, 4096])
def test_the_window_holds_what_state_begins_with(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a smaller one its section would be decoded over what lies behind."""
    weights = bytes(4096)
    section = choose(flat(len(weights)), weights, 8, 8)
    assert section.storage is not Storage.RAW
    copy = Dma(0, Region.INPUT, 0, Region.SCRATCH, 0, 0, 16)
    given = {"scratch": 16, "weights": weights, "sections": (section,), "states": (StateRow(0, 16, 0, 0),)}
    honest = header_of(crafted.blocks(copy, **given).microcode)["window_bytes"]
    assert honest == len(weights)
    monkeypatch.setattr(encode, "window_bytes", lambda program: window)
    blocks = crafted.blocks(copy, **given)
    room = context_bytes(blocks) - len(weights) + window
    image = bytes(crafted.INPUT_BYTES)
    error, _ = run_in(blocks, room, image, len(image))
    assert error == (0 if window == honest else CODES["CONTEXT_TOO_SMALL"])
