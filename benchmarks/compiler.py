"""The compiler against its peers: memory, cycles, compile time and growth, as ratios measured in one run.

    python benchmarks/compiler.py                      the reference networks, with random weights
    python benchmarks/compiler.py --models folder      every .tflite of a folder
    python benchmarks/compiler.py a.tflite b.tflite

Vela's columns need Vela (`pip install openneutron[bench]`, or --vela path); without it only ours are printed. Vela's cycles
are another machine's: information, not a goal. `fast` and `default` are also compared on a target with a TCM, where fusing
saves copies to main memory and so cycles; on the others it saves memory.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import vela  # noqa: E402
from benchmarks.networks import NETWORKS, chain  # noqa: E402
from benchmarks.published import CIFARNET_SCRATCH_BYTES, GOALS  # noqa: E402
from benchmarks.timing import command, interleaved  # noqa: E402
from openneutron.compiler.back.store import choose_constant_forms  # noqa: E402
from openneutron.compiler.front.fuse import fuse  # noqa: E402
from openneutron.compiler.front.ingest import extract, ingest  # noqa: E402
from openneutron.compiler.front.legalize import legalize  # noqa: E402
from openneutron.compiler.plan.bound import cycle_bound  # noqa: E402
from openneutron.convert import convert  # noqa: E402
from openneutron.errors import UnsupportedError  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.options import Options  # noqa: E402
from openneutron.report.model import Report, Totals  # noqa: E402

TARGET = "imxrt700"  # 8x8: 64 MAC per cycle, as Ethos-U55-64
WITH_TCM = "imx95"
SLACK = 1.05  # cycles that memory may cost, relative to our fastest schedule
FIT_STEP = 64  # bytes: a finer --fit than any buffer's alignment needs
CORE_RUNS = 5
GROWTH = (500, 5000)


@dataclass(frozen=True)
class Model:
    """A model to measure."""

    name: str
    path: Path
    data: bytes


def converted(model: Model, target: str = TARGET, **options: object) -> Report:
    """Return the report of a conversion."""
    return convert(model.data, Options(target=target, source=model.name, **options)).report  # type: ignore[arg-type]


def totals(model: Model, target: str = TARGET, **options: object) -> Totals:
    """Return the totals of a conversion."""
    return converted(model, target, **options).totals


def quickest(report: Report) -> int:
    """Return the cycles of the fastest schedule that the search found, at any memory."""
    least: dict[int, int] = {}
    for choice in report.pareto:
        least[choice.graph] = min(least.get(choice.graph, choice.cycles), choice.cycles)
    return sum(least.values()) or report.totals.cycles


def bound(model: Model) -> int:
    """Return the machine model's lower bound on the cycles of all NeutronGraphs."""
    target = targets.load(TARGET)
    graph = read_model(model.data).main
    found = 0
    for group in ingest(graph, target).groups:
        if group.converted:
            kernels = legalize(extract(graph, group)[0], target)
            fuse(kernels, target)
            found += cycle_bound(kernels, target, choose_constant_forms(kernels, target).coded_sizes())
    return found


def smallest_fit(model: Model, start: Totals) -> Totals:
    """Return the totals for the smallest --fit that compiles, by bisection below the peak of `default`."""
    best = start
    low, high = start.io_bytes // FIT_STEP, start.peak_bytes // FIT_STEP + 1
    while low < high:
        middle = (low + high) // 2
        try:
            found = totals(model, fit_bytes=max(middle * FIT_STEP, 1))
        except UnsupportedError:
            low = middle + 1
        else:
            best = min(best, found, key=lambda one: (one.peak_bytes, one.cycles))
            high = min(middle, best.peak_bytes // FIT_STEP)
    return best


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns with the widths of their content, the first one left-aligned."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  " + "  ".join(cells).rstrip(), flush=True)


def measure_quality(models: Sequence[Model], peer: str) -> None:
    """Measure memory and cycles of `fast`, `default` and the smallest fit."""
    memory, cycles, flash = [], [], []
    for model in models:
        fast, report = totals(model, optimize="fast"), converted(model)
        default = report.totals
        fastest = min(fast.cycles, default.cycles, quickest(report))
        least = smallest_fit(model, default)
        theirs = vela.estimate(peer, model.path) if peer else None
        goals = [f"{goal:.1f}" for goal in GOALS[model.name]] if model.name in GOALS else ["-", "-"]
        price = default.cycles / fastest
        note = "" if price <= SLACK else " (over)"
        memory.append(
            (
                model.name,
                f"{default.peak_bytes / 1024:.1f}",
                f"{price:.3f}{note}",
                f"{theirs.sram_kib:.1f}" if theirs else "-",
                f"{default.peak_bytes / 1024 / theirs.sram_kib:.2f}x" if theirs and theirs.sram_kib else "-",
                goals[0],
                f"{least.peak_bytes / 1024:.1f}",
                goals[1],
                f"{least.cycles / fastest:.2f}x",
                f"{fast.peak_bytes / 1024:.1f}",
                f"{default.scratch_bytes:,}",
            )
        )
        stock = report.stock.weight_bytes
        flash.append(
            (
                model.name,
                f"{default.weight_bytes / 1024:.1f}",
                f"{stock / 1024:.1f}",
                f"{theirs.weight_bytes / 1024:.1f}" if theirs else "-",
                f"{default.weight_bytes / theirs.weight_bytes:.2f}x" if theirs and theirs.weight_bytes else "-",
            )
        )
        limit = bound(model)
        cycles.append(
            (
                model.name,
                f"{default.cycles:,}",
                f"{limit:,}",
                f"{default.cycles / limit:.3f}x" if limit else "-",
                f"{fast.cycles:,}",
                f"{default.cycles / fast.cycles:.3f}x",
                f"{theirs.cycles:,}" if theirs else "-",
                f"{default.operators_converted} of {default.operators_total}",
            )
        )
    print_table(
        f"Peak memory in KiB (I/O + scratch + prefetch), {TARGET}",
        (
            "model",
            "default",
            "cycles/fastest",
            "Vela",
            "ours/Vela",
            "goal",
            "least --fit",
            "goal",
            "its price",
            "fast",
            "scratch bytes",
        ),
        memory,
    )
    for row in memory:
        if "cifarnet" in row[0]:
            scratch = int(row[-1].replace(",", ""))
            print(f"  scratch of {row[0]}: {scratch / CIFARNET_SCRATCH_BYTES:.2f}x of NXP's {CIFARNET_SCRATCH_BYTES:,}")
    print_table(
        f"Weights in KiB, {TARGET}",
        ("model", "default", "NXP's converter, estimated", "Vela", "ours/Vela"),
        flash,
    )
    print_table(
        f"Cycles, {TARGET}",
        ("model", "default", "lower bound", "default/bound", "fast", "default/fast", "Vela's machine", "converted"),
        cycles,
    )


def measure_fusing(models: Sequence[Model]) -> None:
    """Measure cycles of `fast` and `default` if whole tensors do not fit the memory that the array works in."""
    rows = []
    for model in models:
        fast, default = totals(model, WITH_TCM, optimize="fast"), totals(model, WITH_TCM)
        rows.append(
            (
                model.name,
                f"{fast.cycles:,}",
                f"{default.cycles:,}",
                f"{default.cycles / fast.cycles:.3f}x",
                "yes" if fast.tcm_bytes else "no",
                "yes" if default.tcm_bytes else "no",
            )
        )
    print_table(
        f"Fusing, {WITH_TCM}: cycles of whole tensors (fast) and of streamed segments (default), and which fit the TCM",
        ("model", "fast", "default", "default/fast", "fast fits", "default fits"),
        rows,
    )


def measure_time(models: Sequence[Model], peer: str, runs: int, folder: Path) -> None:
    """Measure compile times: the command lines in turn, then the compiler alone."""
    rows = []
    for model in models:
        ours = [sys.executable, "-m", "openneutron", "compile", str(model.path), "-o", str(folder / "ours.tflite")]
        contestants: dict[str, Callable[[], object]] = {"ours": command([*ours, "--target", TARGET])}
        if peer:
            contestants["vela"] = vela.contestant(peer, model.path, folder)
        took = interleaved(contestants, runs)
        core, busy = [], []
        for _ in range(CORE_RUNS):
            began, used = time.perf_counter(), time.process_time()
            totals(model)
            core.append(time.perf_counter() - began)
            busy.append(time.process_time() - used)
        rows.append(
            (
                model.name,
                f"{took['ours']:.2f}",
                f"{took['vela']:.2f}" if peer else "-",
                f"{took['ours'] / took['vela']:.2f}x" if peer else "-",
                f"{statistics.median(core) * 1e3:.0f}",
                f"{statistics.median(busy) * 1e3:.0f}",
            )
        )
    print_table(
        f"Compile time, medians of {runs} (command line, seconds) and {CORE_RUNS} (compiler alone, ms)",
        ("model", "ours s", "Vela s", "ours/Vela", "core ms", "core CPU ms"),
        rows,
    )


def measure_growth() -> None:
    """Measure time and memory for ten times the operators, each in a separate process so that peaks do not mix."""
    found = []
    for count in GROWTH:
        words = [sys.executable, __file__, "--grow", str(count)]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        seconds, kib = (float(word) for word in text.split())
        found.append((seconds, kib))
    (t0, m0), (t1, m1) = found
    rows = [
        (f"{count:,} operators", f"{seconds:.2f}", f"{kib / 1024:.0f}")
        for count, (seconds, kib) in zip(GROWTH, found, strict=True)
    ]
    print_table("Growth (CPU seconds; MiB that the compile itself allocates at its peak)", ("", "seconds", "MiB"), rows)
    print(f"  {GROWTH[1] // GROWTH[0]}x the operators: {t1 / t0:.1f}x the time, {m1 / m0:.1f}x the memory")


def grow(count: int) -> None:
    """Print CPU seconds and KiB of one compile, after a small one that warms up; runs in a child process of
    `measure_growth`.
    """
    data = chain(count)
    convert(chain(20), Options(target=TARGET))
    began = time.process_time()
    convert(data, Options(target=TARGET))
    taken = time.process_time() - began
    tracemalloc.start()  # a separate compile, because tracing takes time
    try:
        convert(data, Options(target=TARGET))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(taken, peak / 1024)


def models_of(files: Sequence[str], models: str | None, folder: Path) -> list[Model]:
    """Return the given files, the uncompiled files of a folder, or else the reference networks, written to `folder`."""
    paths = [Path(name) for name in files]
    if models:
        paths += sorted(Path(models).glob("*.tflite"))
    if paths or models:
        found = [Model(path.stem, path, path.read_bytes()) for path in paths]
        return [model for model in found if not _compiled_already(model)]
    made = []
    for name, network in NETWORKS.items():
        path = folder / f"{name}.tflite"
        path.write_bytes(network())
        made.append(Model(name, path, path.read_bytes()))
    return made


def _compiled_already(model: Model) -> bool:
    return any(op.custom_code == "NeutronGraph" for op in read_model(model.data).main.operators)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", help=".tflite files; without any, the reference networks")
    parser.add_argument("--models", help="a folder of .tflite files")
    parser.add_argument("--vela", default="", help="Vela's command, where it is not on the path")
    parser.add_argument("--runs", type=int, default=5, help="rounds of the command lines")
    parser.add_argument("--only", choices=("quality", "time", "growth"), help="one part alone")
    parser.add_argument("--grow", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.grow:
        grow(given.grow)
        return
    peer = vela.find(given.vela)
    if not peer:
        print(
            "Vela is not installed: only our figures follow. `pip install openneutron[bench]` or --vela brings its columns"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = models_of(given.files, given.models, folder)
        if given.only in (None, "quality"):
            measure_quality(models, peer)
            measure_fusing(models)
        if given.only in (None, "time"):
            measure_time(models, peer, given.runs, folder)
    if given.only in (None, "growth"):
        measure_growth()


if __name__ == "__main__":
    main()
