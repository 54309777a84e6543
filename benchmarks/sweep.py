"""What sharing, workers and the store gain: `python benchmarks/sweep.py [machine|compile|evaluate|task|growth|day ...]`.

Ratios within one run, on this machine; about six minutes on two idle cores. CPU seconds, which other programs do not change
much, are printed beside: on a busy machine they say what the same run would take with the cores to itself.

    machine   what two processes gain over one that works twice as long: no ratio of two workers can be better
    compile   a sweep of zoo networks × 3 chips × 5 budgets with 1 and 2 workers, against the same compiles as commands.
              `--commands` of them are run (12: each network for each chip) and stand for all; 60 runs all
    evaluate  labelled images scored by 1 and by 2 processes, once the model is compiled
    task      milliseconds that a task costs beyond an empty task of Dask's own
    growth    10,000 rows in a store: seconds to list them and to write the page, and the page's size
    day       CPU seconds and bytes of a model of its own and of one more variant, and cores for 10,000 models a day
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

NETWORKS = ("cifarnet", "ds_cnn", "resnet8", "autoencoder")
TARGETS = ("imxrt700", "mcxn94x", "imx95")
BUDGETS = ("none", "512K", "256K", "192K", "128K")  # each network fits each
EVALUATED = "mobilenet_v2_cifar"  # heavy enough that starting two processes does not decide
LARGER = "mobilenet_v2"  # a model of another size, for the plan of a day
PER_DAY = 10_000
LOOP = 4_000_000
PR_SET_CHILD_SUBREAPER = 36  # sys/prctl.h
REAP_SECONDS = 5  # the process ends a fraction of a second after the command


@dataclass(frozen=True)
class Taken:
    """Wall-clock seconds, and CPU seconds of all processors."""

    wall: float
    cpu: float
    result: Any = None

    def __str__(self) -> str:
        return f"{self.wall:.1f} s (CPU {self.cpu:.1f} s)"


def timed(run: Callable[[], object], after: Callable[[], None] = lambda: None) -> Taken:
    began, before = time.perf_counter(), _cpu()
    result = run()
    wall = time.perf_counter() - began
    after()
    return Taken(wall, _cpu() - before, result)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def adopt() -> None:
    """Become the parent of processes that a command leaves behind: workers are forked from one that ends after the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap() -> None:
    """Wait for these processes, so that their CPU seconds count, but not for one that Python itself keeps."""
    end = time.monotonic() + REAP_SECONDS
    while time.monotonic() < end:
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.01)
        except ChildProcessError:
            return


def command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "openneutron", *words], check=True, stdout=subprocess.DEVNULL)


def _loop(times: int) -> int:
    found = 0
    for at in range(times * LOOP):
        found ^= at
    return found


def machine() -> None:
    def side_by_side() -> None:
        both = [multiprocessing.Process(target=_loop, args=(2,)) for _ in range(2)]
        for one in both:
            one.start()
        for one in both:
            one.join()

    alone, both = timed(lambda: _loop(4)), timed(side_by_side)
    print(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; two processes of plain Python against one: "
          f"{alone.wall / both.wall:.2f} x")  # fmt: skip


def compile_(commands: int) -> None:
    variants = list(itertools.product(BUDGETS, TARGETS, NETWORKS))  # the first twelve: each network for each chip

    def alone() -> None:
        for fit, target, name in variants[:commands]:
            command("compile", name, "--target", target, *(() if fit == "none" else ("--fit", fit)), "--json")

    def sweep(workers: int) -> None:
        grid = ("--target", ",".join(TARGETS), "--fit", ",".join(BUDGETS))
        with tempfile.TemporaryDirectory() as folder:
            command("sweep", *NETWORKS, *grid, "--workers", str(workers), "--no-reports", "-o", folder)

    few, count = timed(alone), len(variants)
    adopt()
    one, two = timed(lambda: sweep(1)), timed(lambda: sweep(2), after=reap)
    scale = count / commands
    whole = Taken(few.wall * scale, few.cpu * scale)
    said = "" if commands == count else f", from {commands} that were run"
    print(f"{count} compiles as commands: {whole}{said}")
    print(f"  as a sweep: {one} with 1 worker, {two} with 2")
    print(f"  1 worker against commands: {whole.wall / one.wall:.1f} x (by CPU seconds {whole.cpu / one.cpu:.1f} x)")
    print(f"  2 workers against 1: {one.wall / two.wall:.2f} x ({_even(one, two)})")


def _even(one: Taken, two: Taken) -> str:
    return f"CPU seconds spread evenly over two cores: {2 * one.cpu / two.cpu:.2f} x"


def evaluate(images: int) -> None:
    from openneutron.analyze.data.labelled import Wanted
    from openneutron.analyze.data.source import Data
    from openneutron.analyze.sharded import score_shards
    from openneutron.cli.evaluate import build_forms

    data = Data(None, images, shard_size=25)  # the last shard that one process still has is 1/40 of the work
    forms, _ = build_forms(EVALUATED, data, stage=lambda text: None)

    def run(workers: int) -> object:
        return score_shards(forms, data.shards(Wanted((3, 32, 32)), zoo=EVALUATED), workers=workers)

    found = [(timed(lambda: run(1)), timed(lambda: run(2))) for _ in range(2)]
    one, two = (min(column, key=lambda taken: taken.wall) for column in zip(*found, strict=True))
    print(
        f"evaluate {images} images of {EVALUATED} in 3 forms: {one} with 1 worker, {two} with 2: "
        f"{one.wall / two.wall:.2f} x ({_even(one, two)})"
    )


def task(count: int = 100) -> None:
    from openneutron.sweeps import cluster
    from openneutron.sweeps.plan import Model
    from openneutron.sweeps.serial import Task
    from openneutron.sweeps.task import Work

    with tempfile.TemporaryDirectory() as folder, cluster.cluster("", 1) as client:
        file = Path(folder) / "broken.tflite"  # refused at once, so that only the way there and back is timed
        file.write_bytes(b"none")
        work = Work(Model(str(file)), {})
        list(cluster.run(client, [Task("first", "first", work, {})], seconds=60.0, report=False, travel=False))

        def ours(turn: int) -> float:
            tasks = [Task(f"task-{turn}-{at}", f"one-{turn}", work, {"target": "imxrt700"}) for at in range(count)]
            return timed(lambda: list(cluster.run(client, tasks, seconds=60.0, report=False, travel=False))).wall

        def empty(turn: int) -> float:
            keys = [f"empty-{turn}-{at}" for at in range(count)]
            return timed(lambda: client.gather([client.submit(abs, 1, key=key) for key in keys])).wall

        turns = [(ours(turn), empty(turn)) for turn in range(3)]
    mine, dask = (1e3 * min(column) / count for column in zip(*turns, strict=True))
    print(f"a task: {mine:.1f} ms, an empty one of Dask's own {dask:.1f} ms: {mine - dask:.1f} ms more")


def growth(rows: int = PER_DAY) -> None:
    from openneutron.sweeps.results import Sweep
    from openneutron.sweeps.store import Store
    from openneutron.sweeps.task import COLUMNS

    def row(at: int) -> dict[str, Any]:
        figures = {name: float(at * 7919 % 10007) + 0.125 for name in COLUMNS}
        return {
            "model": f"model_{at % 97}.tflite", "target": TARGETS[at % 3], "fit_bytes": BUDGETS[at % 5], **figures,
            "status": "ok", "reason": "", "sha256": "0" * 64, "report": f"reports/{at:064}.html",
            "source": f"model_{at % 97}.tflite", "key": f"{at:064x}",
            "command": f"openneutron compile model_{at % 97}.tflite --target {TARGETS[at % 3]}",
        }  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        store, made = Store(folder), [row(at) for at in range(rows)]
        put = timed(lambda: [store.put(one["key"], one) for one in made])
        listed = timed(lambda: [Store(folder).get(one["key"]) for one in made])
        found = Sweep(tuple(made), Path(folder), ("target", "fit_bytes"))
        front = timed(lambda: found.pareto("stock_ms", "stock_arena_bytes"))
        saved = timed(found.save)
        size = (Path(folder) / "index.html").stat().st_size
    print(
        f"{rows:,} rows: into the store {put.wall:.1f} s, listed {listed.wall:.1f} s, Pareto fronts {front.wall:.2f} s, "
        f"files and page {saved.wall:.1f} s, page {size / 1e6:.1f} MB"
    )


def day() -> None:
    from openneutron.sweeps.plan import Model
    from openneutron.sweeps.task import Work, measure, prepare

    prepare(Work(Model(NETWORKS[0]), {}), 0)  # imports
    for name in (*NETWORKS, LARGER):
        work = Work(Model(name), {})
        first = timed(partial(prepare, work, 0))
        variant = timed(partial(measure, first.result, {"target": "imxrt700"}, 0, report=True))
        row, report = len(json.dumps(variant.result.row)), len(variant.result.report.encode())
        cores = PER_DAY * (first.cpu + variant.cpu) / 86_400
        print(
            f"{name}: export and calibration {first.cpu:.1f} CPU s, a variant with its report {variant.cpu:.1f} CPU s; "
            f"row {row:,} bytes, report {report:,} bytes; {PER_DAY:,} such models a day: {cores:.1f} cores"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes
    print(f"memory of the process that did all of this: at most {peak / 1e6:.1f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", default=["machine", "compile", "evaluate", "task", "growth", "day"])
    parser.add_argument("--commands", type=int, default=12, help="how many compiles are run as commands")
    parser.add_argument("--images", type=int, default=1000)
    given = parser.parse_args()
    measures: dict[str, Callable[[], None]] = {
        "machine": machine,
        "compile": lambda: compile_(given.commands),
        "evaluate": lambda: evaluate(given.images),
        "task": task,
        "growth": growth,
        "day": day,
    }
    for name in given.measures:
        measures[name]()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
