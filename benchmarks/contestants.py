"""Contestants of benchmarks/runtime.py: our delegate in ExecuTorch, our driver alone, and LiteRT in three configurations.

Each contestant is a function without arguments that runs the model once, inputs set before; so nobody pays for Python's
conversions of tensors.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import openneutron
from openneutron import environment, zoo
from openneutron.convert import convert
from openneutron.errors import OptionError, RuntimeFailure
from openneutron.executorch.run.runtime import load_program, register_runtime
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import driver
from openneutron.machine.simulator import Simulator
from openneutron.microcode.graph_op import blocks_of, is_graph_op
from openneutron.microcode.payload import payloads_of_pte
from openneutron.microcode.pte import read_plan
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner
from openneutron.run.samples import Runner, run_samples
from openneutron.terminal.quiet import settle, without_native_chatter

settle()

Run = Callable[[], object]

THREADS = "OPENNEUTRON_THREADS"  # read by the driver when it prepares a model

PEERS = {
    "reference": OpResolverType.BUILTIN_REF,
    "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}
MANY = 64  # samples of a batch
EMPTY_SHAPE = (1, 8, 2, 2)  # one vector of bytes: only the overhead of a call is measured


@dataclass(frozen=True)
class Model:
    """A quantized LiteRT model to measure, and the program that holds it where it comes from PyTorch."""

    name: str
    data: bytes
    pte: bytes | None = None


def from_files(named: str) -> Iterator[Model]:
    """Yield the models of a folder, or of files separated by commas."""
    for part in filter(None, named.split(",")):
        path = Path(part)
        for file in sorted(path.glob("*.tflite")) if path.is_dir() else [path]:
            yield Model(file.stem, file.read_bytes())


def sixteen_bits() -> Iterator[Model]:
    """Convolutions with 16-bit activations, one by one: 3x3, 1x1 and depth-wise, over 32x32 pixels."""
    rng = np.random.default_rng(0)
    for name, code, kernel, channels in (
        ("conv 3x3 64 16x8", "CONV_2D", 3, 64),
        ("conv 1x1 128 16x8", "CONV_2D", 1, 128),
        ("depth-wise 3x3 128 16x8", "DEPTHWISE_CONV_2D", 3, 128),
    ):
        depthwise = code != "CONV_2D"
        shape = (1, kernel, kernel, channels) if depthwise else (channels, kernel, kernel, channels)
        g = GraphBuilder()
        x = g.tensor("x", (1, 32, 32, channels), DType.INT16, 2.0**-12, 0)
        scales = rng.uniform(0.005, 0.02, channels).astype(np.float32)
        w = g.tensor("w", shape, DType.INT8, scales, 0, 3 if depthwise else 0, rng.integers(-127, 128, shape))
        b = g.tensor("b", (channels,), DType.INT64, scales * np.float32(2.0**-12), 0, 0, np.zeros(channels))
        y = g.tensor("y", (1, 32, 32, channels), DType.INT16, 2.0**-8, 0)
        g.op(code, [x, w, b], [y], padding="SAME", stride_h=1, stride_w=1, fused_activation_function="RELU")
        yield Model(name, write_model(g.finish([x], [y])))


def from_zoo(names: str) -> Iterator[Model]:
    """Zoo models with INT8 inputs and outputs; LiteRT runs the partition that the program's delegate was compiled from."""
    for name in names.split(","):
        loaded = zoo.load(name)
        program = openneutron.compile(
            loaded.model, loaded.example_inputs, calibration=loaded.calibration, int8_io=True,
            channels_last=any(value.dim() == 4 for value in loaded.example_inputs), dump_intermediates=True, name=name,
        )  # fmt: skip
        parts = [data for file, data in program.intermediates.items() if is_partition(file) and isinstance(data, bytes)]
        if len(parts) != 1:
            raise OptionError(f"{name} has {len(parts)} partitions; LiteRT cannot run the same program")
        yield Model(name, parts[0], program.pte)


def is_partition(file: str) -> bool:
    """Whether an intermediate is the LiteRT model of a partition, before its conversion."""
    return file.endswith(".tflite") and "converted" not in file


def through_executorch(pte: bytes, inputs: list[Any]) -> tuple[Run, Callable[[], list[Any]]]:
    """Return a run of a program in ExecuTorch's runtime on NHWC inputs, and a function for its outputs as bytes in NHWC
    order.
    """
    import torch
    from executorch.extension.pybindings import portable_lib

    register_runtime()
    program = portable_lib._load_program_from_buffer(pte)
    method = program.load_method("forward")
    wanted = [tensor.shape for tensor in read_plan(pte, where="<pte>").inputs]
    given = [as_channels_last(torch.from_numpy(value), shape) for value, shape in zip(inputs, wanted, strict=True)]
    method.set_inputs(given)
    with without_native_chatter():
        method.execute()  # the first run examines the processor, and reports missing features

    def run(_alive: object = (program, given)) -> None:  # the runtime reads program and inputs in place
        method.execute()

    def outputs() -> list[Any]:
        found = method.get_outputs()
        return [(o.permute(0, 2, 3, 1) if o.dim() == 4 else o).contiguous().numpy().tobytes() for o in found]

    return run, outputs


def as_channels_last(value: Any, shape: tuple[int, ...]) -> Any:
    """View a tensor in LiteRT's order with PyTorch's `shape`: four dimensions are NCHW there, unless the shape fits already."""
    seen = value.permute(0, 3, 1, 2) if len(shape) == value.dim() == 4 else value
    return seen if tuple(seen.shape) == shape else value.reshape(shape)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Prepare models inside with this number of threads; restore the number afterwards."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = str(count)
    try:
        yield
    finally:
        os.environ.pop(THREADS)
        if before is not None:
            os.environ[THREADS] = before


def through_driver(model: Model, inputs: list[Any], optimize: str) -> tuple[Run, list[Any]]:
    """A run of the compiled model, and its outputs as bytes; it must be one NeutronGraph, or LiteRT would run a part of it."""
    result = convert(model.data, Options(optimize=optimize, source=model.name))
    graph = read_model(result.model).main
    if len(graph.operators) != 1 or not is_graph_op(graph.operators[0]):
        reasons = {op.reason for op in result.report.operators if op.reason}
        raise OptionError(f"{model.name} does not compile to one NeutronGraph: {'; '.join(sorted(reasons))}")
    blocks = blocks_of(graph, graph.operators[0], outputs=len(graph.operators[0].outputs) - 1)
    simulator = Simulator(blocks.microcode, blocks.weights, blocks.kernels, where=model.name)
    outputs = [value.tobytes() for value in simulator.run(inputs)]
    return simulator.repeat, outputs


def one_by_one_and_batch(model: Model, inputs: list[Any]) -> tuple[Run, Run]:
    """Return runs of MANY samples: one after the other, and in one call.

    Uses the .pte if there is one, else the LiteRT model.
    """
    runner: Runner
    if model.pte is not None:
        runner, samples = load_program(model.pte), _torch_samples(model.pte, inputs)
    else:
        runner, samples = LiteRtRunner(convert(model.data, Options(source=model.name)).model), [inputs] * MANY
    batch = partial(run_samples, runner, samples, threads=environment.threads())
    if [_bytes_of(one) for one in batch()] != [_bytes_of(runner(*one)) for one in samples]:
        raise RuntimeFailure(f"{model.name} gives other bytes in a batch: nothing here is worth timing")
    return lambda: [runner(*one) for one in samples], batch


def _torch_samples(pte: bytes, inputs: list[Any]) -> list[Any]:
    import torch

    wanted = [tensor.shape for tensor in read_plan(pte, where="<pte>").inputs]
    given = [as_channels_last(torch.from_numpy(value), shape) for value, shape in zip(inputs, wanted, strict=True)]
    return [given] * MANY


def _bytes_of(outputs: tuple[Any, ...]) -> list[bytes]:
    return [np.ascontiguousarray(value).tobytes() for value in outputs]


def clearing(run: Run) -> Run:
    """Return a function that only clears the memory that a run clears before it starts: outputs and scratch."""
    simulator = getattr(run, "__self__", None)
    assert isinstance(simulator, Simulator)
    info = simulator.info
    held = np.ones(info.scratch_bytes + info.prefetch_bytes + sum(one.bytes for one in simulator.outputs), np.uint8)
    address, size = held.ctypes.data, held.size
    return lambda: (ctypes.memset(address, 0, size), held)


def through_litert(model: Model, inputs: list[Any], resolver: OpResolverType) -> Run:
    """Return a run in LiteRT, one thread."""
    with without_native_chatter():
        interpreter = Interpreter(model_content=model.data, num_threads=1, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    invoke: Run = interpreter.invoke
    return invoke


def random_inputs(model: Model) -> list[Any]:
    """Return seeded bytes over the whole range of each input."""
    rng, graph = np.random.default_rng(0), read_model(model.data).main
    made = []
    for index in graph.inputs:
        tensor = graph.tensors[index]
        limits = np.iinfo(tensor.dtype.numpy)
        made.append(rng.integers(limits.min, limits.max, tensor.shape, dtype=tensor.dtype.numpy, endpoint=True))
    return made


def empty_programs() -> tuple[bytes, bytes]:
    """Return the smallest delegated graph, and one portable operator on as many bytes."""
    import torch
    from executorch.exir import to_edge

    class Relu(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x)

    value = torch.ones(EMPTY_SHAPE)
    ours = openneutron.compile(Relu(), (value,), calibration=[(value,)], int8_io=True, channels_last=True, name="empty")
    portable = to_edge(torch.export.export(Relu(), (value.to(torch.int8),))).to_executorch()
    return ours.pte, bytes(portable.buffer)


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    ))  # fmt: skip


def heap_bytes() -> int | None:
    """Return the bytes on the process's heap, None if the C library does not count them."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        return None
    library.mallinfo2.restype = _Heap
    found = library.mallinfo2()
    return int(found.uordblks + found.hblkhd)


def memory_ratio(pte: bytes, inputs: list[Any]) -> float | None:
    """Return the bytes held while a program runs, divided by the planned bytes: scratch, constants, inputs and outputs.

    Constants in the program count in place; the heap is measured after a run. Another program must have run before, so that
    memory per process or thread is already allocated.
    """
    planned = constants = 0
    for payload in payloads_of_pte(pte, where="<pte>"):
        blocks = (payload.microcode, payload.weights, payload.kernels)
        with Simulator(*blocks) as simulator:
            planned += simulator.info.scratch_bytes + simulator.info.prefetch_bytes
            planned += sum(tensor.bytes for tensor in simulator.tensors)
        constants += sum(map(len, blocks))
    before = heap_bytes()
    if before is None:
        return None
    run, _ = through_executorch(pte, inputs)
    run()
    held = (heap_bytes() or 0) - before
    return (held + constants) / (planned + constants)


def isa() -> str:
    """Name of the instruction set in use."""
    name = driver.library().neutronGetIsa
    name.restype = ctypes.c_char_p
    found: bytes = name()
    return found.decode()
