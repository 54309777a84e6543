"""Microcode that hands out memory it never wrote gets zeros, whatever that memory held before."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.machine import driver
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import Compiled
from openneutron.microcode.instructions import Dma
from openneutron.microcode.table import Region
from tests.executorch.delegates import payload_of, program_of
from tests.hostile import crafted

SECRET = b"the secret of another tenant....".ljust(32, b".")
SIZE = 4096


def leak(region: Region, offset: int = 0) -> Compiled:
    """Copies a region to the output; the last byte of the output is never written."""
    copy = Dma(0, region, 0, Region.OUTPUT, offset, 0, SIZE - offset - 1)
    sizes = {Region.SCRATCH: {"scratch": SIZE}, Region.PREFETCH: {"prefetch": SIZE}, Region.TCM: {"tcm": SIZE}}
    target = "imx95" if region is Region.TCM else "imxrt700"
    return crafted.blocks(copy, target=target, output_bytes=SIZE, **sizes[region])  # type: ignore[arg-type]


def plant() -> None:
    """Leave the secret in memory that the next allocations of such sizes are likely to get."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    held = [libc.malloc(size) for size in range(SIZE - 64, 2 * SIZE, 64) for _ in range(8)]
    for place in held:
        ctypes.memmove(place, SECRET * (SIZE // len(SECRET) - 4), SIZE - 4 * len(SECRET))
    for place in held:
        libc.free(ctypes.c_void_p(place))


REGIONS = (Region.SCRATCH, Region.PREFETCH, Region.TCM)


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.name)
def test_simulator(region: Region) -> None:
    blocks = leak(region)
    plant()
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        if region is not Region.TCM:
            for view in (simulator._scratch, simulator._prefetch, *simulator._outputs):
                view.data[:] = np.resize(np.frombuffer(SECRET, np.uint8), view.data.size)
        for _ in range(2):
            (found,) = simulator.run([np.zeros(crafted.INPUT_BYTES, np.int8)])
            assert not found.any()


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.name)
def test_driver(region: Region) -> None:
    blocks = leak(region)
    plant()
    held = [np.frombuffer(block.ljust(16, b"\0"), np.uint8).copy() for block in (blocks.microcode, blocks.weights)]
    raw = [np.zeros(len(data) + 16, np.uint8) for data in held]
    aligned = [room[-room.ctypes.data % 16 :][: len(data)] for room, data in zip(raw, held, strict=True)]
    for place, data in zip(aligned, held, strict=True):
        place[:] = data
    config = driver.ModelConfig(
        aligned[0].ctypes.data, aligned[1].ctypes.data, ctypes.cast(blocks.kernels, ctypes.c_void_p)
    )
    sizes = driver.ModelSizes(len(blocks.microcode), len(blocks.weights), len(blocks.kernels), SIZE, SIZE)
    handle = driver.prepare(config, sizes, "crafted")
    room = np.resize(np.frombuffer(SECRET, np.uint8), 4 * SIZE + 16)
    parts = room[-room.ctypes.data % 16 :][: 4 * SIZE].reshape(4, SIZE)
    inputs = (ctypes.c_void_p * 1)(parts[0].ctypes.data)
    outputs = (ctypes.c_void_p * 4)(parts[1].ctypes.data, parts[2].ctypes.data, None, None)
    data = driver.DataConfig(inputs, outputs, 0xDEAD0, parts[3].ctypes.data)
    driver.check(driver.library().neutronRunBlocking(handle, ctypes.byref(data)), handle)
    assert not parts[1].any()
    driver.unprepare(handle)


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.name)
def test_delegate(region: Region) -> None:
    target = "imx95" if region is Region.TCM else "imxrt700"
    payload = payload_of(leak(region), [0], [0], target=target)
    x, y = torch.zeros(crafted.INPUT_BYTES, dtype=torch.int8), torch.zeros(SIZE, dtype=torch.int8)
    plant()
    program = LoadedProgram(program_of([payload], [x], [[y]]), where="crafted.pte", etdump=False)
    for _ in range(2):
        (found,) = program.run(x)
        assert not found.any()
