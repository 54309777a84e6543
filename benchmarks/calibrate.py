"""Fit the constants of the cycle model on the published latencies, and predict each one by a fit on all others.

    python benchmarks/calibrate.py            errors of the constants in the target files, the fit, leave-one-out
    python benchmarks/calibrate.py --write    also write the fitted constants into the target files

Each network is planned as NXP's converter would (`openneutron.board`: whole tensors, one call per operator), every call is
priced by the C machine model with trial constants, and what stays on the CPU is added as CPU time. Both Neutron-C targets share
the constants but for one: on MCX N94x the CPU that drives the array fetches its code from flash, so what it does per row and
call takes longer.

There are hardly more points than constants, so the fit is a maximum a posteriori estimate: relative errors of 5 % are as good
as a constant that is off its prior by its stated factor. Priors come from public facts about the machine, not from earlier
fits; the table says to which factor the points narrow each of them, and which ones they do not determine.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.board_networks import BOARD_NETWORKS  # noqa: E402
from benchmarks.published import POINTS, Point  # noqa: E402
from openneutron.board.answer import converted_by_stock  # noqa: E402
from openneutron.board.cpu import CORTEX_M, DELEGATE_CALL, cpu_cycles  # noqa: E402
from openneutron.board.interval import spread  # noqa: E402
from openneutron.machine import targets  # noqa: E402
from openneutron.machine.pricing import Machine, call_cost, cycles_of, dma_cost  # noqa: E402
from openneutron.machine.targets import Target  # noqa: E402
from openneutron.microcode import abi  # noqa: E402
from openneutron.microcode.encode import encode_call  # noqa: E402
from openneutron.microcode.instructions import Call, Dma, Wait  # noqa: E402

STEPS = 1024  # constants count 1/1024 cycle
TOLERANCE = 0.05  # relative error of one point that weighs as much as one constant a factor off its prior
NEUTRON_C = ("imxrt700", "mcxn94x")
CODE_IN_FLASH = ("mcxn94x",)  # imxrt700 runs its examples out of zero-wait SRAM
# imx95 has no published latency of a model: constants of the array are those of imxrt700, memory constants are its own.
ALSO_ARRAY = ("imx95", ("mac", "lane", "row"))
# If the points leave more than this share of the prior's uncertainty, they do not determine the constant.
UNDETERMINED = 0.8


@dataclass(frozen=True)
class Prior:
    """The assumption about a constant before fitting: cycles, with an uncertainty factor."""

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
    Prior(
        "code_in_flash", 1.5, 1.5, "code behind a 2 KiB cache: row and call take between once and about twice as long"
    ),
    Prior(
        "softmax", 150.0, 1.6, "CPU: two exponentials of about eight multiplications each, and a scaling, per element"
    ),
)
NAMES = tuple(prior.name for prior in PRIORS)
FITTED = ("mac", "lane", "row", "weight_byte", "call", "dma_byte")  # those in the target files
DRIVEN = ("row", "call")  # the CPU's work

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Workload:
    """A published point with its stock plan: encoded calls, sizes of its copies, and the CPU's work."""

    point: Point
    target: Target
    calls: tuple[tuple[bytes, int], ...]  # (encoded call, output rows)
    copies: tuple[int, ...]
    cpu_cycles: int  # without softmax
    softmax_elements: int

    def milliseconds(self, cycles: Sequence[float]) -> float:
        """Return the latency for these constants, in the order of `PRIORS`."""
        machine = Machine(replace(self.target, cost=with_constants(self.target, cycles)))
        npu = sum(cycles_of(call_cost(machine, words, 0, rows)) for words, rows in self.calls)
        npu += sum(cycles_of(dma_cost(machine, size)) for size in self.copies)
        cpu = self.cpu_cycles + self.softmax_elements * cycles[NAMES.index("softmax")]
        return self.target.milliseconds(npu) + cpu / self.target.cpu_clock_hz * 1e3

    def error(self, cycles: Sequence[float]) -> float:
        """Return the relative error against the published latency."""
        return self.milliseconds(cycles) / self.point.milliseconds - 1


def workload(point: Point) -> Workload:
    """Return the network of a point, planned as by NXP's converter."""
    target = targets.load(point.target)
    made = converted_by_stock(BOARD_NETWORKS[point.network](), target, fetch_constants=point.fetch_constants)
    calls: list[tuple[bytes, int]] = []
    copies: list[int] = []
    for step in (step for plan in made.plans for step in plan.program.instructions):
        if isinstance(step, Call):
            height = step.operands[abi.by_id(step.kernel).operands.index("output")].height
            calls.append((encode_call(step), height))
        elif isinstance(step, Dma):
            copies.append(step.bytes)
        else:
            assert isinstance(step, Wait), "stock plans have no loops"
    graph = made.graph
    left = [graph.operators[index] for index in made.left]
    no_exponential = replace(CORTEX_M, exponential=0.0)
    elements = sum(math.prod(graph.tensors[op.outputs[0]].shape) for op in left if op.code == "SOFTMAX")
    cpu = sum(cpu_cycles(graph, op, no_exponential) for op in left) + DELEGATE_CALL * len(made.plans)
    return Workload(point, target, tuple(calls), tuple(copies), cpu, elements)


def with_constants(target: Target, cycles: Sequence[float]) -> targets.Cost:
    """The target's constants with the fitted ones replaced."""
    values = dict(zip(NAMES, cycles, strict=True))
    slower = values["code_in_flash"] if target.name in CODE_IN_FLASH else 1.0
    fitted = {name: values[name] * (slower if name in DRIVEN else 1.0) for name in FITTED}
    return replace(target.cost, **{name: round(value * STEPS) for name, value in fitted.items()})


def in_files() -> Vector:
    """Return the constants in the target files and the CPU model, in the order of `PRIORS`."""
    plain, slow = (targets.load(name).cost for name in ("imxrt700", "mcxn94x"))
    values = {name: getattr(plain, name) / STEPS for name in FITTED}
    return np.array([*values.values(), slow.row / plain.row, CORTEX_M.exponential])


def _residuals(loads: Sequence[Workload], logs: Vector) -> Vector:
    cycles = np.exp(logs)
    misses = [math.log1p(load.error(cycles)) / TOLERANCE for load in loads]
    drifts = [(log - np.log(p.cycles)) / np.log(p.factor) for log, p in zip(logs, PRIORS, strict=True)]
    return np.array([*misses, *drifts])


def fit(loads: Sequence[Workload], rounds: int = 40) -> Vector:
    """Fit the constants, in cycles: Levenberg-Marquardt over their logarithms, so that none becomes negative."""
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


def uncertainty(loads: Sequence[Workload], cycles: Vector) -> Vector:
    """Return the uncertainty factor of each constant: one standard deviation of the posterior around the fit."""
    logs, step = np.log(cycles), 1e-2
    here = _residuals(loads, logs)
    slopes = np.stack([(_residuals(loads, logs + step * unit) - here) / step for unit in np.eye(len(logs))], 1)
    return np.exp(np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes))))


def errors(loads: Sequence[Workload], cycles: Vector) -> list[float]:
    """Return the relative error of each point with fitted constants."""
    return [load.error(cycles) for load in loads]


def left_out(loads: Sequence[Workload]) -> list[float]:
    """Return the relative error of each point, predicted by a fit on all others."""
    return [errors([load], fit([other for other in loads if other is not load]))[0] for load in loads]


def left_out_widths(found: Sequence[float]) -> list[float]:
    """Return the half width, in logarithms, of each left-out point's interval, made from the errors of the others."""
    logs = [math.log1p(error) for error in found]
    return [spread([*logs[:at], *logs[at + 1 :]]) for at in range(len(logs))]


def _table(title: str, loads: Sequence[Workload], values: Sequence[float], notes: Sequence[str]) -> None:
    print(f"\n{title}")
    for load, value, note in zip(loads, values, notes, strict=True):
        p = load.point
        took = p.milliseconds * (1 + value)
        print(f"  {p.target:9} {p.network:21} {p.milliseconds:8.3f} ms  model {took:8.3f} ms  {value:+7.1%}  {note}")
    sizes = np.abs(values)
    print(f"  mean |error| {sizes.mean():.1%}, largest {sizes.max():.1%}")


def _interval_note(load: Workload, error: float, width: float) -> str:
    predicted = load.point.milliseconds * (1 + error)
    low, high = predicted / math.exp(width), predicted * math.exp(width)
    inside = low <= load.point.milliseconds <= high
    return f"predicted {low:.3f} to {high:.3f} ms: {'inside' if inside else 'OUTSIDE'}"


def _write(cycles: Vector) -> None:
    """Replace the fitted figures in the target files, keeping every comment."""
    folder = Path(targets.__file__).parent
    for name, constants in (*((one, FITTED) for one in NEUTRON_C), ALSO_ARRAY):
        cost = with_constants(targets.load(name), cycles)
        path = folder / f"{name}.toml"
        text = path.read_text("utf-8")
        for constant in constants:
            line = f"{constant} = {getattr(cost, constant)}"
            text, count = re.subn(rf"^{constant} = \d+ *", f"{line:<24} ", text, flags=re.MULTILINE)
            assert count == 1, f"{path}: no line for {constant}"
        path.write_text(text, "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    print(f"set CORTEX_M.exponential in board/cpu.py to {cycles[NAMES.index('softmax')]:.0f}")
    print("now run: python -m openneutron.compiler.back.generate, and rebuild the libraries")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the errors; exit code 1 when leave-one-out misses 8 % in the mean, 20 % at worst, or an interval misses a point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the fitted constants into the target files")
    given = parser.parse_args(arguments)
    loads = [workload(point) for point in POINTS]
    _table("constants in the target files", loads, errors(loads, in_files()), ["fitted"] * len(loads))
    cycles = fit(loads)
    print("\nconstant          prior, factor     fit [cycles]")
    for prior, value, factor in zip(PRIORS, cycles, uncertainty(loads, cycles), strict=True):
        narrowed = math.log(factor) < UNDETERMINED * math.log(prior.factor)
        said = f"x/: {factor:4.2f}" if narrowed else "not determined by the points"
        print(f"  {prior.name:14} {prior.cycles:7.2f} x/: {prior.factor:4.2f}  {value:8.3f}   {said:29} {prior.why}")
    _table(f"fit on {len(loads)} points", loads, errors(loads, cycles), ["fitted"] * len(loads))
    predicted = left_out(loads)
    widths = left_out_widths(predicted)
    notes = [_interval_note(*one) for one in zip(loads, predicted, widths, strict=True)]
    _table("leave-one-out: each point predicted by a fit on all others", loads, predicted, notes)
    print(f"  median interval: times or by {math.exp(float(np.median(widths))):.3f}")
    print(f"  for board/interval.py: LEFT_OUT = ({', '.join(f'{math.log1p(one):.3f}' for one in predicted)})")
    if given.write:
        _write(cycles)
        return 0
    sizes = np.abs(predicted)
    missed = any("OUTSIDE" in note for note in notes)
    return int(sizes.max() > 0.20 or sizes.mean() > 0.08 or missed)


if __name__ == "__main__":
    sys.exit(main())
