"""Memory while a program runs: what the compiler planned, and next to nothing beyond it."""

from __future__ import annotations

import ctypes

import numpy as np
import torch

from openneutron.executorch.run.runtime import LoadedProgram
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model
from openneutron.machine.simulator import Simulator
from tests.executorch.delegates import compiled, payload_of, program_of, random_int8

MARGIN = 1.05
SIZE, CHANNELS = 32, 256


class _Heap(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )  # fmt: skip


def _allocated() -> int:
    """Bytes that the process holds from malloc, large mappings included."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _Heap
    heap = library.mallinfo2()
    return int(heap.uordblks + heap.hblkhd)


def _model() -> Model:
    """Two convolutions of 590 kB of weights each, and megabytes of activations between them."""
    rng = np.random.default_rng(0)
    g = GraphBuilder()
    shape = (1, SIZE, SIZE, CHANNELS)
    x = g.tensor("x", shape, DType.INT8, scale=0.05, zero_point=0)
    b = g.tensor("b", (CHANNELS,), DType.INT32, scale=0.0005, data=rng.integers(-99, 99, CHANNELS))
    y = x
    for index in range(2):
        w = rng.integers(-127, 128, (CHANNELS, 3, 3, CHANNELS))
        weights = g.tensor(f"w{index}", w.shape, DType.INT8, scale=0.01, data=w)
        made = g.tensor(f"y{index}", shape, DType.INT8, scale=0.05, zero_point=0)
        g.op("CONV_2D", [y, weights, b], [made], stride_w=1, stride_h=1, padding="SAME")
        y = made
    return g.finish([x], [y])


def test_a_running_program_takes_what_was_planned() -> None:
    blocks = compiled(_model())
    with Simulator(blocks.microcode, blocks.weights, blocks.kernels) as simulator:
        scratch = simulator.info.scratch_bytes + simulator.info.prefetch_bytes
    x = random_int8(1, CHANNELS, SIZE, SIZE).to(memory_format=torch.channels_last)
    pte = program_of([payload_of(blocks, [1], [1])], [x], [[x]])
    LoadedProgram(pte, where="first.pte", etdump=False).run(x)  # what is made once in a process is made now
    before = _allocated()
    program = LoadedProgram(pte, where="model.pte", etdump=False)
    program.run(x)
    taken = _allocated() - before
    planned = scratch + 2 * x.nbytes  # the program's memory plan: its input and its output
    print(f"planned {planned + len(pte)}, taken {taken + len(pte)} ({(taken + len(pte)) / (planned + len(pte)):.4f}x)")
    assert taken + len(pte) <= MARGIN * (planned + len(pte))
    assert taken >= scratch  # or this would not have measured the delegate
    assert len(program.run(x)) == 1
    assert _allocated() - before <= taken + x.nbytes  # nothing but the outputs handed out grows
