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
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.board_networks import BOARD_NETWORKS  # noqa: E402
from benchmarks.published import POINTS, UNEXPLAINED, Point  # noqa: E402
from openneutron.board import fit as board_fit  # noqa: E402
from openneutron.board.answer import converted_by_stock  # noqa: E402
from openneutron.board.fit import Belief, LeftOut, Measured  # noqa: E402
from openneutron.board.interval import spread  # noqa: E402
from openneutron.board.workload import (  # noqa: E402
    FITTED,
    NAMES,
    NEUTRON_C,
    Vector,
    constants_in_files,
    with_constants,
    workload_of,
)
from openneutron.machine import targets  # noqa: E402

# No latency of a model on these is published: constants of the array are those of imxrt700, memory constants are their own.
ALSO_ARRAY = ("imx95", "imxrt2660")
ARRAY = ("mac", "lane", "row")
MEAN_WITHIN, WORST_WITHIN, INTERVAL_WITHIN = 0.06, 0.12, 1.15  # goals for left-out points
# If the points leave more than this share of the prior's uncertainty, they do not determine the constant.
UNDETERMINED = 0.8


@dataclass(frozen=True)
class Assumption:
    """The assumption about a constant before fitting: cycles, with an uncertainty factor."""

    name: str
    cycles: float
    factor: float
    why: str


PRIORS = (
    Assumption("mac", 1.0, 1.25, "one dot product of all M units per cycle (arXiv 2509.14388), less than full use"),
    Assumption("lane", 1.0, 1.5, "one tap of M channels per cycle: no operand is shared between channels"),
    Assumption("row", 32.0, 2.0, "some tens of register writes by the CPU for each row of a channel group"),
    Assumption("weight_byte", 0.25, 2.0, "a 32-bit bus loads four bytes per cycle"),
    Assumption("call", 150.0, 2.0, "a firmware call with its arguments on a Cortex-M33"),
    Assumption("dma_byte", 0.5, 2.0, "a CPU copy of a word takes about two cycles"),
    Assumption(
        "code_in_flash", 1.5, 1.5, "code behind a 2 KiB cache: row and call take between once and about twice as long"
    ),
    Assumption(
        "softmax", 150.0, 1.6, "CPU: two exponentials of about eight multiplications each, and a scaling, per element"
    ),
)
PRIOR = Belief.of_factors([one.cycles for one in PRIORS], [one.factor for one in PRIORS])
assert tuple(one.name for one in PRIORS) == NAMES, "constants come in the order of board/workload.py"


@dataclass(frozen=True)
class Load(Measured):
    """A published point with the work of its stock plan."""

    point: Point

    @property
    def group(self) -> str:
        """Times of the same network on the same chip are left out together."""
        return f"{self.point.target} {self.point.network}"


def workload(point: Point) -> Load:
    """Return the network of a point, planned as by NXP's converter."""
    target = targets.load(point.target)
    made = converted_by_stock(
        BOARD_NETWORKS[point.network](), target, fetch_constants=point.fetch_constants, sdk=point.sdk
    )
    return Load(workload_of(made, target), point.milliseconds, point)


def fit(loads: Sequence[Measured]) -> Vector:
    """Fit the constants, in cycles, on these points and the priors of this file."""
    return board_fit.fit(loads, PRIOR)


def uncertainty(loads: Sequence[Measured], cycles: Vector) -> Vector:
    """Return the uncertainty factor of each constant: one standard deviation of the posterior around the fit."""
    return np.exp(np.sqrt(np.diag(np.linalg.inv(board_fit.precision(loads, PRIOR, cycles)))))


def errors(loads: Sequence[Measured], cycles: Vector) -> list[float]:
    """Return the relative error of each point with fitted constants."""
    return [load.error(cycles) for load in loads]


def left_out(loads: Sequence[Measured]) -> list[LeftOut]:
    """Predict each point by a fit on all others."""
    return board_fit.left_out(loads, PRIOR)


def left_out_widths(found: Sequence[LeftOut]) -> list[float]:
    """Return the half width, in logarithms, of each left-out point's interval, made from the errors of the others."""
    logs = [math.log1p(one.error) for one in found]
    return [spread([*logs[:at], *logs[at + 1 :]], one.doubt) for at, one in enumerate(found)]


def _table(title: str, loads: Sequence[Load], values: Sequence[float], notes: Sequence[str]) -> None:
    print(f"\n{title}")
    for load, value, note in zip(loads, values, notes, strict=True):
        p = load.point
        took = p.milliseconds * (1 + value)
        print(f"  {p.target:9} {p.network:21} {p.milliseconds:8.3f} ms  model {took:8.3f} ms  {value:+7.1%}  {note}")
    sizes = np.abs(values)
    print(f"  mean |error| {sizes.mean():.1%}, largest {sizes.max():.1%}")


def _interval_note(load: Load, error: float, width: float) -> str:
    predicted = load.point.milliseconds * (1 + error)
    low, high = predicted / math.exp(width), predicted * math.exp(width)
    inside = low <= load.point.milliseconds <= high
    return f"predicted {low:.3f} to {high:.3f} ms: {'inside' if inside else 'OUTSIDE'}"


POSTERIOR_HEAD = """\
# How sure the published latencies are of the constants in the target files: the inverse covariance of their
# logarithms, in the order of board/workload.py. Written by `python benchmarks/calibrate.py --write`.
"""


def posterior_text(loads: Sequence[Load], cycles: Vector) -> str:
    """Return the file from which `openneutron board learn` goes on."""
    rows = board_fit.precision(loads, PRIOR, cycles)
    body = "".join(f"  [{', '.join(f'{value:.6g}' for value in row)}],\n" for row in rows)
    return f"{POSTERIOR_HEAD}precision = [\n{body}]\n"


def _write(loads: Sequence[Load], cycles: Vector) -> None:
    """Replace the fitted figures in the target files, keeping every comment, and the file of their uncertainty."""
    path = Path(targets.__file__).parents[2] / "board" / board_fit.POSTERIOR
    path.write_text(posterior_text(loads, cycles), "utf-8")
    folder = Path(targets.__file__).parent
    for name, constants in (*((one, FITTED) for one in NEUTRON_C), *((one, ARRAY) for one in ALSO_ARRAY)):
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
    """Print the errors; exit code 1 when left-out errors miss their goals, or an interval its point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the fitted constants into the target files")
    given = parser.parse_args(arguments)
    loads = [workload(point) for point in POINTS]
    _table("constants in the target files", loads, errors(loads, constants_in_files()), ["fitted"] * len(loads))
    cycles = fit(loads)
    print("\nconstant          prior, factor     fit [cycles]")
    for prior, value, factor in zip(PRIORS, cycles, uncertainty(loads, cycles), strict=True):
        narrowed = math.log(factor) < UNDETERMINED * math.log(prior.factor)
        said = f"x/: {factor:4.2f}" if narrowed else "not determined by the points"
        print(f"  {prior.name:14} {prior.cycles:7.2f} x/: {prior.factor:4.2f}  {value:8.3f}   {said:29} {prior.why}")
    _table(f"fit on {len(loads)} points", loads, errors(loads, cycles), ["fitted"] * len(loads))
    found = left_out(loads)
    predicted, widths = [one.error for one in found], left_out_widths(found)
    notes = [_interval_note(*one) for one in zip(loads, predicted, widths, strict=True)]
    _table("leave-one-out: each network predicted by a fit on all others", loads, predicted, notes)
    print(f"  median interval: times or by {math.exp(float(np.median(widths))):.3f}")
    print(f"  for board/interval.py: LEFT_OUT = ({', '.join(f'{math.log1p(one):.3f}' for one in predicted)})")
    print(f"  and LEFT_OUT_DOUBT = {np.mean([one.doubt for one in found]):.4f}")
    strange = [workload(point) for point in UNEXPLAINED]
    _table("not fitted: no documented fact explains it", strange, errors(strange, cycles), ["predicted"] * len(strange))
    with_strange = np.abs([one.error for one in left_out([*loads, *strange])])
    print(
        f"  with it, leave-one-out on {len(with_strange)} points: mean |error| {with_strange.mean():.1%}, "
        f"largest {with_strange.max():.1%}"
    )
    if given.write:
        _write(loads, cycles)
        return 0
    sizes = np.abs(predicted)
    missed = any("OUTSIDE" in note for note in notes)
    return int(sizes.max() > WORST_WITHIN or sizes.mean() > MEAN_WITHIN or missed)


if __name__ == "__main__":
    sys.exit(main())
