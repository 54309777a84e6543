"""The runtime against LiteRT on this machine: how many times faster, one thread, contestants interleaved in one run.

    python benchmarks/runtime.py                       networks of the zoo, compiled from PyTorch
    python benchmarks/runtime.py --zoo resnet8,ds_cnn
    python benchmarks/runtime.py --models folder       every .tflite of a folder, or files separated by commas
    OPENNEUTRON_ISA=avx2 python benchmarks/runtime.py  another instruction set

Ours is the driver's run of the compiled schedule, as the delegate calls it. LiteRT runs the same quantized model with its
reference kernels, its built-in kernels without delegates, and XNNPACK. "uncascaded" is ours without line buffers: below
1.00 the cascade costs that share of the time. Ratios are of quiet times (tenth percentile), medians in brackets.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402

from benchmarks.timing import Times, rounds  # noqa: E402
from openneutron import _driver as driver  # noqa: E402
from openneutron.compiler.graph_op import blocks_of, is_graph_op  # noqa: E402
from openneutron.convert import Options, convert  # noqa: E402
from openneutron.errors import OpenNeutronError, OptionError  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.simulator import Simulator  # noqa: E402

ZOO = ("mobilenet_v2", "resnet8", "ds_cnn", "vww_mobilenet_v1")  # what the project's speed is stated for
SECONDS = 4.0  # per model; enough rounds for quiet percentiles of the slowest contestant
SLOW = "reference"  # measured on its own: it would take most of the time of every round
PEERS = {
    SLOW: OpResolverType.BUILTIN_REF,
    "built-in": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "XNNPACK": OpResolverType.AUTO,
}


@dataclass(frozen=True)
class Model:
    """A quantized LiteRT model to measure."""

    name: str
    data: bytes


def from_files(named: str) -> Iterator[Model]:
    """Models of a folder, or files separated by commas."""
    for part in filter(None, named.split(",")):
        path = Path(part)
        for file in sorted(path.glob("*.tflite")) if path.is_dir() else [path]:
            yield Model(file.stem, file.read_bytes())


def from_zoo(names: str) -> Iterator[Model]:
    """Zoo models, quantized as `openneutron.compile` does it; the partition is the LiteRT model everyone runs."""
    import openneutron
    from openneutron import zoo

    for name in names.split(","):
        loaded = zoo.load(name)
        program = openneutron.compile(
            loaded.model, loaded.example_inputs, calibration=loaded.calibration, per_channel=True,
            dump_intermediates=True, name=name,
        )  # fmt: skip
        for file, content in program.intermediates.items():
            if file.endswith(".tflite") and "converted" not in file and isinstance(content, bytes):
                yield Model(name if file.startswith("partition_0.") else f"{name} {file[:-7]}", content)


def ours(model: Model, inputs: list[Any], optimize: str) -> Callable[[], None]:
    """A run of the compiled model; it must be one NeutronGraph, or LiteRT would run a part of it."""
    result = convert(model.data, Options(optimize=optimize, source=model.name))
    graph = read_model(result.model).main
    if len(graph.operators) != 1 or not is_graph_op(graph.operators[0]):
        reasons = {op.reason for op in result.report.operators if op.reason}
        raise OptionError(f"{model.name} does not compile to one NeutronGraph: {'; '.join(sorted(reasons))}")
    blocks = blocks_of(graph, graph.operators[0], outputs=len(graph.operators[0].outputs) - 1)
    simulator = Simulator(blocks.microcode, blocks.weights, blocks.kernels, where=model.name)
    simulator.run(inputs)
    return simulator.repeat


def theirs(model: Model, inputs: list[Any], resolver: OpResolverType) -> Callable[[], None]:
    """A run in LiteRT, one thread."""
    interpreter = Interpreter(model_content=model.data, num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    invoke: Callable[[], None] = interpreter.invoke
    return invoke


def random_inputs(model: Model) -> list[Any]:
    """Seeded bytes over the whole range of each input."""
    rng, graph = np.random.default_rng(0), read_model(model.data).main
    made = []
    for index in graph.inputs:
        tensor = graph.tensors[index]
        limits = np.iinfo(tensor.dtype.numpy)
        made.append(rng.integers(limits.min, limits.max, tensor.shape, dtype=tensor.dtype.numpy, endpoint=True))
    return made


def measure(model: Model, seconds: float) -> dict[str, Times]:
    """Times of all contestants."""
    inputs = random_inputs(model)
    contestants = {"ours": ours(model, inputs, "default"), "uncascaded": ours(model, inputs, "fast")}
    peers = {name: theirs(model, inputs, resolver) for name, resolver in PEERS.items()}
    quick = {name: run for name, run in peers.items() if name != SLOW}
    times = rounds(contestants | quick, seconds)
    return times | rounds({SLOW: peers[SLOW]}, seconds / 4)


def ratio(peer: Times, own: Times) -> str:
    """How many times faster: from quiet times, and from medians."""
    return f"{peer.quiet / own.quiet:.2f} ({peer.median / own.median:.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="", help="a folder of .tflite files, or files separated by commas")
    parser.add_argument("--zoo", default="", help=f"zoo models, separated by commas; without --models: {','.join(ZOO)}")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to measure each model")
    arguments = parser.parse_args()
    zoo_names = arguments.zoo or ("" if arguments.models else ",".join(ZOO))
    isa = driver.library().neutronGetIsa
    isa.restype = driver.ctypes.c_char_p
    table = Table(title=f"times faster than LiteRT on this machine, one thread, {isa().decode()}")
    for column in ("model", "ours, ms", *(f"{name} ×" for name in (SLOW, "built-in", "XNNPACK")), "uncascaded ×"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for model in (*from_files(arguments.models), *(from_zoo(zoo_names) if zoo_names else ())):
        try:
            times = measure(model, arguments.seconds)
        except OpenNeutronError as error:
            table.add_row(model.name, str(error))
            continue
        own = times["ours"]
        shown = [ratio(times[name], own) for name in (*PEERS, "uncascaded")]
        table.add_row(model.name, f"{own.quiet * 1e3:.3f} ({own.median * 1e3:.3f})", *shown)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
