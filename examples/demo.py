"""CifarNet from PyTorch to bit-exact execution: compile, run on 1,000 real images, and check every goal.

Run it with `make demo`. The exit code is 1 when a promise is broken.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import openneutron as on
from openneutron.report.render import print_report
from openneutron.terminal.quiet import quiet

TARGET = "imxrt700"
FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"
# The goals of this demo.
MOST_POINTS_LOST = 0.5
LEAST_AGREEMENT = 99.5

Array = np.ndarray[Any, Any]


@dataclass
class Stopwatch:
    """A progress bar and the seconds of each step."""

    bar: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Any]:
        task = self.bar.add_task(name, total=total)
        began = time.perf_counter()
        yield lambda: self.bar.advance(task)
        self.seconds[name] = time.perf_counter() - began
        self.bar.remove_task(task)


@dataclass(frozen=True)
class Results:
    """The outputs of the four ways to run the network, one row per image."""

    labels: Array
    float_scores: Array
    pt2e_scores: Array
    pte_scores: Array
    reference_lsb: Array
    simulated_cycles: int


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    # Progress goes to stderr and is erased, so that only the summary stays.
    shown = Console(stderr=True)
    with quiet(), Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        watch = Stopwatch(bar)
        program, model = compile_cifarnet(watch)
        results = run_everything(program, model, watch)
    print_report(program.report, console)
    return print_checks(program, results, watch, console)


def compile_cifarnet(watch: Stopwatch) -> tuple[on.Program, Any]:
    """Export, quantize on real images, partition, lower to LiteRT, compile, write the `.pte`."""
    from dataclasses import replace

    with watch.step("importing torch and loading CifarNet"):
        from openneutron import zoo

        model = zoo.load("cifarnet")
    with watch.step("compiling"):
        program = on.compile(
            model.model,
            model.example_inputs,
            calibration=model.calibration,
            target=TARGET,
            dump_intermediates=True,
            name="CifarNet",
        )
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "cifarnet.pte"
    program.save(path)
    files = {str(path.relative_to(FOLDER.parents[1])): path.stat().st_size}
    return replace(program, report=replace(program.report, files=files)), model


def run_everything(program: on.Program, model: Any, watch: Stopwatch) -> Results:
    """The float model, the PT2E graph, the `.pte` in the stock runtime, and LiteRT's reference kernels, on every image."""
    import torch

    from openneutron.machine.simulator import Simulator
    from openneutron.microcode.payload import payloads_of_pte
    from openneutron.run.runner import LiteRtRunner

    # Images are small: a second thread costs more than it gains.
    torch.set_num_threads(1)
    test = model.test_images()
    images = test.inputs.split(1)
    with torch.no_grad(), watch.step("float model"):
        float_scores = model.model(test.inputs).numpy()
    with torch.no_grad(), watch.step("PT2E graph", len(images)) as advance:
        pt2e_scores = stacked(lambda image: program.quantized(image).numpy(), images, advance)
    with watch.step(".pte in the ExecuTorch runtime", len(images)) as advance:
        pte_scores = stacked(lambda image: program.run(image)[0].numpy(), images, advance)

    source = program.intermediates["partition_0.tflite"]
    assert isinstance(source, bytes)
    reference = LiteRtRunner(source, source="partition_0.tflite")
    quantize = input_quantizer(program.quantized)
    scale, zero_point = reference.outputs[0].quantization.scalar
    with watch.step("LiteRT reference kernels", len(images)) as advance:
        expected = stacked(lambda image: next(iter(reference.run([quantize(image)]).outputs.values())), images, advance)
    ours = np.round(pte_scores / np.float32(scale)).astype(np.int64) + zero_point
    lsb = np.abs(ours - expected.astype(np.int64)).max(axis=1)

    (payload,) = payloads_of_pte(program.pte, where="cifarnet.pte")
    with Simulator(payload.microcode, payload.weights, payload.kernels) as simulator:
        simulator.run([quantize(images[0])])
        cycles = simulator.cycles
    return Results(test.labels, float_scores, pt2e_scores, pte_scores, lsb, cycles)


def stacked(run: Any, images: Any, advance: Any) -> Array:
    """Return one row of scores per image."""
    rows = []
    for image in images:
        rows.append(run(image).reshape(-1))
        advance()
    return np.stack(rows)


def input_quantizer(quantized: Any) -> Any:
    """Return the function from float input to the program's INT8 [1, H, W, C], with the parameters of its first
    quantize node.
    """
    import torch

    operator = torch.ops.quantized_decomposed.quantize_per_tensor.default
    arguments = next(node.args[1:] for node in quantized.graph.nodes if node.target is operator)
    return lambda image: operator(image, *arguments).permute(0, 2, 3, 1).contiguous().numpy()


def print_checks(program: on.Program, results: Results, watch: Stopwatch, console: Console) -> int:
    """Print the goals, one row each; returns the exit code."""
    count = len(results.labels)

    def accuracy(scores: Array) -> float:
        return 100 * float((scores.argmax(axis=1) == results.labels).mean())

    change = accuracy(results.pte_scores) - accuracy(results.float_scores)
    agreement = 100 * float((results.pte_scores.argmax(axis=1) == results.pt2e_scores.argmax(axis=1)).mean())
    exact = int((results.reference_lsb == 0).sum())
    predicted, simulated = program.report.totals.cycles, results.simulated_cycles
    rows = [
        ("float accuracy", f"{accuracy(results.float_scores):.1f} % of {count:,} CIFAR-10 test images", "", True),
        ("INT8 accuracy", f"{accuracy(results.pte_scores):.1f} %, {change:+.1f} points against float",
         f"at least -{MOST_POINTS_LOST}", change >= -MOST_POINTS_LOST),
        ("agreement with PT2E", f"{agreement:.1f} % same top-1", f"at least {LEAST_AGREEMENT} %",
         agreement >= LEAST_AGREEMENT),
        ("LiteRT reference", f"0 LSB on {exact:,} of {count:,} images, {results.reference_lsb.max()} LSB at most",
         "0 LSB on all", exact == count),
        ("cycles", f"{predicted:,} predicted, {simulated:,} simulated", "equal", predicted == simulated),
    ]  # fmt: skip
    table = Table(title="Promises", title_justify="left", title_style="bold", header_style="cyan", box=None)
    for heading in ("what", "measured", "promised", ""):
        table.add_column(heading)
    for name, measured, promised, kept in rows:
        verdict = "" if not promised else "[green]kept[/green]" if kept else "[red]BROKEN[/red]"
        table.add_row(name, measured, promised, verdict)
    console.print(table)
    steps = ", ".join(f"{name} {took:.1f}" for name, took in watch.seconds.items())
    console.print(f"seconds: {steps}", markup=False)
    return 0 if all(kept for *_, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
