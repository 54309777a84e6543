"""Fit the physical constants of the cycle model on part of the published latencies and predict the others.

    python benchmarks/calibrate.py            errors of the constants in the target files, the fit, leave-one-out
    python benchmarks/calibrate.py --write    also write the fitted constants into the target files

One set of constants serves both Neutron-C targets. Each network is compiled the way the stock converter would have (one
call per operator, no cascades, no merged pixels) and every call is priced by the C machine model with trial constants.
There are fewer points than constants, so the fit is a maximum a posteriori estimate: relative errors of 5 % are as good as
a constant that is off its prior by its stated factor. Priors come from public facts about the machine, not from earlier
fits; a constant that no chosen point determines stays at its prior, which leave-one-out shows without mercy.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.networks import NETWORKS  # noqa: E402
from benchmarks.published import POINTS, Point  # noqa: E402
from openneutron.convert import convert  # noqa: E402
from openneutron.litert.read import read_model  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.machine.pricing import Machine, call_cost, cycles_of, dma_cost  # noqa: E402
from openneutron.machine.targets import Target  # noqa: E402
from openneutron.microcode import abi  # noqa: E402
from openneutron.microcode.decode import decode  # noqa: E402
from openneutron.microcode.encode import encode_call  # noqa: E402
from openneutron.microcode.graph_op import blocks_of  # noqa: E402
from openneutron.microcode.instructions import Call, Dma, Loop, Wait  # noqa: E402
from openneutron.options import Options  # noqa: E402

STEPS = 1024  # constants count 1/1024 cycle
TOLERANCE = 0.05  # relative error of one point that weighs as much as one constant a factor off its prior
NOT_STOCK = ("merge_pixels", "stream_pooling")  # what the stock converter's header shows it does not do
NEUTRON_C = ("imxrt700", "mcxn94x")
# imx95 has no published whole-model latency: it takes what belongs to the array from here, and nothing about its memory.
ALSO_ARRAY = ("imx95", ("mac", "lane", "row"))


@dataclass(frozen=True)
class Prior:
    """What is believed of a constant before any latency is looked at: cycles, give or take a factor."""

    name: str
    cycles: float
    factor: float
    why: str


PRIORS = (
    Prior("mac", 1.0, 1.25, "one dot product of all M units per cycle (arXiv 2509.14388), less than full use"),
    Prior("lane", 1.0, 1.5, "one tap of M channels per cycle: no operand is shared between channels"),
    Prior("row", 32.0, 2.0, "some tens of register writes by the CPU for each row of a channel group"),
    Prior("weight_byte", 0.25, 2.0, "a 32-bit bus loads four bytes per cycle"),
    Prior("call", 150.0, 2.0, "a firmware call with its arguments on a Cortex-M33"),
    Prior("dma_byte", 0.5, 2.0, "a CPU copy of a word takes about two cycles"),
)
NAMES = tuple(prior.name for prior in PRIORS)

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Workload:
    """A published point with its compiled calls, encoded, and the sizes of its copies."""

    point: Point
    target: Target
    calls: tuple[tuple[bytes, int], ...]  # (encoded call, output rows)
    copies: tuple[int, ...]

    def milliseconds(self, cost: targets.Cost) -> float:
        """Latency under these constants, as the simulator would time it."""
        machine = Machine(replace(self.target, cost=cost))
        cycles = sum(cycles_of(call_cost(machine, words, 0, rows)) for words, rows in self.calls)
        cycles += sum(cycles_of(dma_cost(machine, size)) for size in self.copies)
        return self.target.milliseconds(cycles)

    def error(self, cost: targets.Cost) -> float:
        """Relative error against the published latency."""
        return self.milliseconds(cost) / self.point.milliseconds - 1


def workload(point: Point) -> Workload:
    """Compile a point's network as the stock converter would."""
    options = Options(
        target=point.target,
        optimize="fast",
        passes_off=NOT_STOCK,
        fetch_constants_to_sram=point.fetch_constants,
        source=point.network,
    )
    graph = read_model(convert(NETWORKS[point.network](), options).model).main
    (op,) = graph.operators
    blocks = blocks_of(graph, op, outputs=1)
    calls: list[tuple[bytes, int]] = []
    copies: list[int] = []
    for step in decode(blocks.microcode, blocks.weights, blocks.kernels).instructions:
        if isinstance(step, Call):
            height = step.operands[abi.by_id(step.kernel).operands.index("output")].height
            calls.append((encode_call(step), height))
        elif isinstance(step, Dma):
            copies.append(step.bytes)
        else:
            assert isinstance(step, Wait) and not isinstance(step, Loop), "stock schedules have no loops"
    return Workload(point, targets.load(point.target), tuple(calls), tuple(copies))


def with_constants(cost: targets.Cost, cycles: Sequence[float]) -> targets.Cost:
    """The target's constants with the fitted ones replaced."""
    fitted = dict(zip(NAMES, (round(value * STEPS) for value in cycles), strict=True))
    return replace(cost, **fitted)


def _residuals(loads: Sequence[Workload], logs: Vector) -> Vector:
    cycles = np.exp(logs)
    misses = [load.error(with_constants(load.target.cost, cycles)) / TOLERANCE for load in loads]
    drifts = [(log - np.log(p.cycles)) / np.log(p.factor) for log, p in zip(logs, PRIORS, strict=True)]
    return np.array([*misses, *drifts])


def fit(loads: Sequence[Workload], rounds: int = 40) -> Vector:
    """Constants in cycles: Levenberg-Marquardt over their logarithms, so that none becomes negative."""
    logs = np.log([prior.cycles for prior in PRIORS])
    damping, step = 1e-2, 1e-2  # a step of 1 % moves even the smallest constant by several 1/1024
    here = _residuals(loads, logs)
    for _ in range(rounds):
        slopes = np.stack([(_residuals(loads, logs + step * unit) - here) / step for unit in np.eye(len(logs))], 1)
        normal = slopes.T @ slopes
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slopes.T @ here)
        there = _residuals(loads, logs + move)
        if there @ there < here @ here:
            logs, here, damping = logs + move, there, damping / 3
        else:
            damping *= 5
        if np.abs(move).max() < 1e-4:
            break
    return np.exp(logs)


def errors(loads: Sequence[Workload], cycles: Vector) -> list[float]:
    """Relative error of each point under fitted constants."""
    return [load.error(with_constants(load.target.cost, cycles)) for load in loads]


def _table(title: str, loads: Sequence[Workload], values: Sequence[float], notes: Sequence[str]) -> None:
    print(f"\n{title}")
    for load, value, note in zip(loads, values, notes, strict=True):
        p = load.point
        took = p.milliseconds * (1 + value)
        print(f"  {p.target:9} {p.network:13} {p.milliseconds:8.3f} ms  model {took:8.3f} ms  {value:+7.1%}  {note}")
    sizes = np.abs(values)
    print(f"  mean |error| {sizes.mean():.1%}, largest {sizes.max():.1%}")


def _write(cycles: Vector) -> None:
    """Replace the fitted figures in the target files, keeping every comment."""
    folder = ROOT / "src/openneutron/targets"
    values = dict(zip(NAMES, cycles, strict=True))
    for name, constants in (*((one, NAMES) for one in NEUTRON_C), ALSO_ARRAY):
        path = folder / f"{name}.toml"
        text = path.read_text("utf-8")
        for constant in constants:
            line = f"{constant} = {round(values[constant] * STEPS)}"
            text, count = re.subn(rf"^{constant} = \d+ *", f"{line:<24} ", text, flags=re.MULTILINE)
            assert count == 1, f"{path}: no line for {constant}"
        path.write_text(text, "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    print("now run: python -m openneutron.compiler.back.generate, and rebuild the libraries")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the errors; the exit code says whether the goal was met (every point within 15 %, 8 % in the mean)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the fitted constants into the target files")
    given = parser.parse_args(arguments)
    loads = [workload(point) for point in POINTS]
    chosen = [load for load in loads if load.point.calibrates]
    roles = ["fitted" if load.point.calibrates else "predicted" for load in loads]
    current = [load.error(load.target.cost) for load in loads]
    _table("constants in the target files", loads, current, roles)
    cycles = fit(chosen)
    fitted = errors(loads, cycles)
    print("\nconstant      prior, factor    fit [cycles]")
    for prior, value in zip(PRIORS, cycles, strict=True):
        print(f"  {prior.name:12} {prior.cycles:7.2f} x/: {prior.factor:4.2f}  {value:8.3f}   {prior.why}")
    _table(f"fit on {len(chosen)} points", loads, fitted, roles)
    left_out = [errors([load], fit([other for other in loads if other is not load]))[0] for load in loads]
    _table("leave-one-out: each point predicted by a fit on all others", loads, left_out, ["predicted"] * len(loads))
    if given.write:
        _write(cycles)
        return 0
    sizes = np.abs(current)
    return int(sizes.max() > 0.15 or sizes.mean() > 0.08)


if __name__ == "__main__":
    sys.exit(main())
