"""Constants decoded call by call, in a context too small for all of them: the same results."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.machine import driver
from openneutron.machine.simulator import Simulator
from openneutron.microcode import encode
from openneutron.microcode.decode import header_of
from openneutron.microcode.graph_op import Compiled, blocks_of
from openneutron.microcode.instructions import Dma, StateRow
from openneutron.microcode.storage.sections import choose, flat
from openneutron.microcode.table import Region, Storage
from openneutron.options import Options
from tests import tiny
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
    least = whole - (header["plain_bytes"] - header["window_bytes"])
    image = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        expected = simulator.run([image])[0].tobytes()
    for room in (whole, whole - 16, least):
        assert run_in(blocks, room, image.tobytes(), len(expected)) == (0, expected)
    assert run_in(blocks, least - 16, image.tobytes(), len(expected))[0] != 0


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
