"""The runtime against LiteRT on this machine: how many times faster, one thread, contestants interleaved in one run.

    python benchmarks/runtime.py                       networks of the zoo, compiled from PyTorch: two minutes
    python benchmarks/runtime.py --zoo resnet8,ds_cnn
    python benchmarks/runtime.py --int16               convolutions with 16-bit activations
    python benchmarks/runtime.py --models folder       every .tflite of a folder, or files separated by commas
    OPENNEUTRON_ISA=avx2 python benchmarks/runtime.py  AVX2 for both, on a processor with AVX-512
    python benchmarks/runtime.py --litert avx2         AVX2 for LiteRT alone

Ours is the whole `.pte` in ExecuTorch's runtime (of a .tflite: the driver's run of the compiled schedule). LiteRT runs the same
quantized model with its reference kernels, its built-in kernels without delegates, and XNNPACK. It takes the best
instructions of the processor, unless OPENNEUTRON_ISA=avx2 or --litert avx2 holds it to AVX2. "uncascaded" compares two
schedules in the driver alone: below 1.00 the cascades cost that share of the time; "2 threads" is the driver on as many
against one. "batch" is `Program.run_many` on many samples against `Program.run` on each; programs of one delegate then
take as many threads as there are processors for this process. "clearing" is the share of the driver's time in which it
clears scratch, prefetch and outputs. "memory" is what is held while running over what was planned. Ratios are medians
over rounds: in each round every contestant has a turn, and two are divided.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import contestants as c  # noqa: E402
from benchmarks.timing import Times, ratio, rounds  # noqa: E402
from benchmarks.without_avx512 import hold_to_avx2  # noqa: E402
from openneutron.errors import OpenNeutronError, RuntimeFailure  # noqa: E402

ZOO = ("mobilenet_v2", "resnet8", "ds_cnn", "vww_mobilenet_v1")  # what the project's speed is stated for
SECONDS = 8.0  # per model: some twenty rounds of the slowest contestant
COLUMNS = {"reference": "reference ×", "built-in": "built-in ×", "XNNPACK": "XNNPACK ×"}
OWN = {
    "uncascaded ×": ("uncascaded", "cascaded"),
    "2 threads ×": ("cascaded", "2 threads"),
    "batch ×": ("one by one", "batch"),
}


def measure(model: c.Model, seconds: float) -> dict[str, Times]:
    """Times of all contestants; outputs of ours must be the same bytes on every way."""
    inputs = c.random_inputs(model)
    cascaded, expected = c.through_driver(model, inputs, "default")
    uncascaded, same = c.through_driver(model, inputs, "fast")
    with c.threads(2):
        shared, alike = c.through_driver(model, inputs, "default")
    runs = {name: c.through_litert(model, inputs, resolver) for name, resolver in c.PEERS.items()}
    runs |= {"cascaded": cascaded, "uncascaded": uncascaded, "2 threads": shared, "ours": cascaded}
    runs["clearing"] = c.clearing(cascaded)
    found = same
    if model.pte is not None:
        runs["ours"], outputs = c.through_executorch(model.pte, inputs)
        runs["ours"]()
        found = outputs()
    if not expected == found == same == alike:
        raise RuntimeFailure(f"{model.name} gives other bytes on another way: nothing here is worth timing")
    runs["one by one"], runs["batch"] = c.one_by_one_and_batch(model, inputs)
    return rounds(runs, seconds)


def row(model: c.Model, times: dict[str, Times], memory: float | None) -> list[str]:
    """What the table says about a model."""
    shown = [f"{times['ours'].median * 1e3:.3f}"]
    shown += [f"{ratio(times[name], times['ours']):.2f}" for name in COLUMNS]
    shown += [f"{ratio(times[one], times[other]):.2f}" for one, other in OWN.values()]
    shown += [f"{ratio(times['clearing'], times['cascaded']):.2%}"]
    shown += ["–" if memory is None else f"{memory:.3f}"]
    return [model.name, *shown]


def overhead(seconds: float) -> float:
    """Seconds that the delegate adds: the smallest delegated graph minus one portable operator, through ExecuTorch."""
    import numpy as np

    ours, portable = c.empty_programs()
    n, channels, *image = c.EMPTY_SHAPE
    value = [np.ones((n, *image, channels), np.int8)]
    runs = {"ours": c.through_executorch(ours, value)[0], "portable": c.through_executorch(portable, value)[0]}
    times = rounds(runs, seconds)
    return times["ours"].median - times["portable"].median


def litert_is_held(asked: str, ours: str) -> bool:
    """Whether LiteRT is held to AVX2: where that is asked for, else where the user holds ours to it."""
    return asked == "avx2" if asked else ours == os.environ.get("OPENNEUTRON_ISA") == "avx2"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="", help="a folder of .tflite files, or files separated by commas")
    parser.add_argument("--zoo", default="", help=f"zoo models, separated by commas; without --models: {','.join(ZOO)}")
    parser.add_argument("--int16", action="store_true", help="convolutions with 16-bit activations, nothing else")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to measure each model")
    instructions = (
        "instructions LiteRT may use; without it: avx2 where OPENNEUTRON_ISA=avx2 holds ours to it, else best"
    )
    parser.add_argument("--litert", choices=("avx2", "best"), default="", help=instructions)
    arguments = parser.parse_args()
    ours = c.isa()
    held = litert_is_held(arguments.litert, ours)
    if held:
        try:
            hold_to_avx2()  # before anything below makes an interpreter
        except OpenNeutronError as error:
            sys.exit(f"{error}\nWith --litert best it keeps the best this processor has")
    zoo_names = arguments.zoo or ("" if arguments.models or arguments.int16 else ",".join(ZOO))
    wide = c.sixteen_bits() if arguments.int16 else ()
    table = Table(
        title=f"times faster than LiteRT on this machine, one thread; ours with {ours}, "
        f"LiteRT {'held to avx2' if held else 'with the best it finds'}"
    )
    for column in ("model", "ours, ms", *COLUMNS.values(), *OWN, "clearing", "memory ×"):
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=column == "model")
    os.environ.pop(c.THREADS, None)
    delegate = overhead(min(arguments.seconds, 2.0))
    for model in (*wide, *c.from_files(arguments.models), *(c.from_zoo(zoo_names) if zoo_names else ())):
        try:
            memory = c.memory_ratio(model.pte, c.random_inputs(model)) if model.pte else None
            table.add_row(*row(model, measure(model, arguments.seconds), memory))
        except OpenNeutronError as error:
            table.add_row(model.name, str(error))
    table.caption = f"delegate overhead: {delegate * 1e6:.1f} µs (smallest delegated graph minus one portable operator)"
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
