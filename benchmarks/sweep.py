"""What sharing, workers and the store gain: `python benchmarks/sweep.py [compile|evaluate|task|growth ...] [--networks N]`.

Ratios within one run, on this machine:
    compile   a sweep of zoo networks × 3 chips × 5 budgets against the same compiles as commands, with 1 and 2 workers
    evaluate  labelled images scored by 1 and by 2 processes
    task      milliseconds that a task costs beyond an empty task of Dask's own
    growth    10,000 rows: seconds to list them and to write the page, and the page's size
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openneutron as on

NETWORKS = ("cifarnet", "ds_cnn", "resnet8", "autoencoder")
TARGETS = ("imxrt700", "mcxn94x", "imx95")
BUDGETS = (None, 256 << 10, 128 << 10, 96 << 10, 64 << 10)
EVALUATED = "mobilenet_v2_cifar"  # heavy enough that starting two processes does not decide
COMMANDS = 3  # so many are timed as commands; each imports, exports and calibrates anew, and the rest would do the same


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def compile_(networks: tuple[str, ...]) -> None:
    count = len(networks) * len(TARGETS) * len(BUDGETS)

    def command(name: str, target: str) -> None:
        words = [sys.executable, "-m", "openneutron", "compile", name, "--target", target, "--json"]
        subprocess.run(words, check=True, capture_output=True)

    began = time.perf_counter()
    for at in range(COMMANDS):
        command(networks[at % len(networks)], TARGETS[at % len(TARGETS)])
    alone = time.perf_counter() - began
    taken = {}
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            taken[workers] = seconds(
                lambda workers=workers, folder=folder: on.sweep(  # type: ignore[misc]
                    list(networks), folder=folder, workers=workers, reports=False, target=list(TARGETS),
                    fit_bytes=list(BUDGETS),
                )
            )  # fmt: skip
    each = alone / COMMANDS
    print(f"{count} compiles: {each * count:.0f} s as commands ({each:.1f} s each), {taken[1]:.0f} s as a sweep")
    print(
        f"  1 worker against commands: {each * count / taken[1]:.1f} x; 2 workers against 1: {taken[1] / taken[2]:.2f} x"
    )


def evaluate(images: int) -> None:
    from openneutron.analyze.sharded import score_shards
    from openneutron.cli.evaluate import Data, asked

    forms, _ = asked(EVALUATED, Data(None, images), "imxrt700", False, lambda text: None)

    def run(workers: int) -> object:
        from openneutron.analyze.data.labelled import Wanted

        shards = Data(None, images, shard_size=50).shards(Wanted((3, 32, 32)), zoo=EVALUATED)
        return score_shards(forms, shards, workers=workers)

    taken = {workers: seconds(lambda workers=workers: run(workers)) for workers in (1, 2)}  # type: ignore[misc]
    print(
        f"evaluate {images} images in 3 forms: {taken[1]:.1f} s with 1, {taken[2]:.1f} s with 2: {taken[1] / taken[2]:.2f} x"
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
        tasks = [Task(f"task-{at}", "one", work, {"target": "imxrt700"}) for at in range(count)]
        list(cluster.run(client, [Task("first", "first", work, {})], seconds=60.0, report=False, travel=False))
        ours = seconds(lambda: list(cluster.run(client, tasks, seconds=60.0, report=False, travel=False)))
        empty = seconds(lambda: client.gather([client.submit(abs, at, key=f"empty-{at}") for at in range(count)]))
    print(f"a task: {1e3 * ours / count:.1f} ms, an empty one of Dask's own: {1e3 * empty / count:.1f} ms")


def growth(rows: int = 10_000) -> None:
    from openneutron.sweeps.results import Sweep
    from openneutron.sweeps.task import COLUMNS

    def row(at: int) -> dict[str, Any]:
        figures = {name: float(at * 7919 % 10007) + 0.125 for name in COLUMNS}
        return {
            "model": f"model_{at % 97}.tflite", "target": TARGETS[at % 3], "fit_bytes": BUDGETS[at % 5], **figures,
            "status": "ok", "reason": "", "sha256": "0" * 64, "report": f"reports/{at:064}.html",
            "command": f"openneutron compile model_{at % 97}.tflite --target {TARGETS[at % 3]}", "key": f"{at:064}",
        }  # fmt: skip

    with tempfile.TemporaryDirectory() as folder:
        found = Sweep(tuple(map(row, range(rows))), Path(folder), ("target", "fit_bytes"))
        front = seconds(lambda: found.pareto("stock_ms", "stock_arena_bytes"))
        saved = seconds(found.save)
        size = (Path(folder) / "index.html").stat().st_size
    print(f"{rows:,} rows: Pareto front {front:.2f} s, files and page {saved:.1f} s, page {size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", default=["compile", "evaluate", "task", "growth"])
    parser.add_argument("--networks", type=int, default=len(NETWORKS), help="how many of the zoo's networks are swept")
    parser.add_argument("--images", type=int, default=1000)
    given = parser.parse_args()
    measures: dict[str, Callable[[], None]] = {
        "compile": lambda: compile_(NETWORKS[: given.networks]),
        "evaluate": lambda: evaluate(given.images),
        "task": task,
        "growth": growth,
    }
    for name in given.measures:
        measures[name]()


if __name__ == "__main__":
    main()
