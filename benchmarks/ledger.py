"""Compare every published measurement with what was predicted for it, misses included.

    python benchmarks/ledger.py            each figure with its prediction: hit or miss
    python benchmarks/ledger.py --predict  also predict points of ledger.toml that have no prediction yet, with today's date
    python benchmarks/ledger.py --write    also write the table of docs/ledger.md

A prediction stays as it was made: it gets a date, and no later version of the rules changes it. Times are predicted by a fit
that has not seen any time of the same network on the same chip.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.board_networks import BOARD_NETWORKS  # noqa: E402
from benchmarks.calibrate import PRIOR, Load, workload  # noqa: E402
from benchmarks.published import POINTS, UNEXPLAINED, Point  # noqa: E402
from openneutron.board.answer import stock_answer  # noqa: E402
from openneutron.board.fit import believe  # noqa: E402
from openneutron.board.interval import LEFT_OUT, spread  # noqa: E402
from openneutron.board.ledger import HEAD, Measurement, Prediction, point_text, read_ledger  # noqa: E402
from openneutron.board.sdk import version_of  # noqa: E402
from openneutron.board.workload import NEUTRON_C  # noqa: E402
from openneutron.files import write_file  # noqa: E402
from openneutron.machine import targets  # noqa: E402

LEDGER = ROOT / "benchmarks" / "ledger.toml"
PAGE = ROOT / "docs" / "ledger.md"
BEGIN, END = "<!-- ledger -->\n", "<!-- end of ledger -->\n"
TITLE = "# Published by NXP and users of its tools; `python benchmarks/ledger.py` predicts and compares them.\n"
# What counts as a hit: a byte or call off is a miss for what a plan decides, a share for what coding decides.
EQUAL = ("scratch_bytes", "kernel_calls", "prefetch_bytes")
WITHIN_BYTES = {"arena_bytes": 256, "planned_bytes": 256, "method_bytes": 256}
WITHIN_SHARE = {"weight_bytes": 0.05, "microcode_bytes": 0.10}
WORDS = {
    "arena_bytes": "arena", "planned_bytes": "planned", "method_bytes": "method", "prefetch_bytes": "prefetch",
    "scratch_bytes": "scratch", "weight_bytes": "weights", "microcode_bytes": "microcode", "kernel_calls": "calls",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One figure of a point beside its prediction; `predicted` is "" and `hit` None without one."""

    point: Measurement
    what: str
    measured: str
    predicted: str = ""
    hit: bool | None = None


def sdk_of(point: Measurement) -> str:
    """Return the rules' version for a point's converter; where none is named, that of the same published time, or 2.x."""
    for one in (*POINTS, *UNEXPLAINED):
        if (one.target, one.network) == (point.chip, point.model) and one.milliseconds in point.milliseconds:
            return one.sdk
    return version_of(point.converter) if point.converter else "2.x"


@cache
def _loads() -> tuple[Load, ...]:
    return tuple(workload(point) for point in POINTS)


def predict(point: Measurement, date: str) -> Prediction | None:
    """Return the prediction of a point, None when its network or chip is not known here."""
    if point.chip not in NEUTRON_C or point.model not in BOARD_NETWORKS:
        return None
    data, target = BOARD_NETWORKS[point.model](), targets.load(point.chip)
    answer = stock_answer(data, target, fetch_constants=point.fetch_constants, sdk=sdk_of(point))
    figures = {name: getattr(answer, name) for name in WORDS if getattr(point, name)}
    if not point.milliseconds:
        return Prediction(date, figures=figures)
    same = [load.point.target == point.chip and load.point.network == point.model for load in _loads()]
    belief = believe([load for load, one in zip(_loads(), same, strict=True) if not one], PRIOR)
    work = workload(Point(point.chip, point.model, point.time, point.source, point.fetch_constants, sdk_of(point))).work
    time = work.milliseconds(belief.constants)
    errors = [error for error, one in zip(LEFT_OUT, same, strict=True) if not one]
    factor = math.exp(spread(errors, belief.doubt(work)))
    low, middle, high = (round(float(one), 4) for one in (time / factor, time, time * factor))
    return Prediction(date, middle, low, high, figures or None)


def rows_of(point: Measurement) -> Iterator[Row]:
    """Return each figure of a point with its prediction."""
    made = point.predicted
    if point.milliseconds:
        shown = " and ".join(f"{one:g} ms" for one in point.milliseconds)
        if made is None or not made.milliseconds:
            yield Row(point, "time", shown)
        else:
            inside = all(made.low <= one <= made.high for one in point.milliseconds)
            text = f"{made.milliseconds:.3f} ms, {made.low:.3f} to {made.high:.3f}"
            yield Row(point, "time", shown, text, inside)
    for name, word in WORDS.items():
        measured = getattr(point, name)
        if not measured:
            continue
        if made is None or name not in (made.figures or {}):
            yield Row(point, word, f"{measured:,}")
            continue
        predicted = (made.figures or {})[name]
        yield Row(point, word, f"{measured:,}", f"{predicted:,}", _is_hit(name, measured, predicted))


def _is_hit(name: str, measured: int, predicted: int) -> bool:
    if name in WITHIN_BYTES:
        return abs(predicted - measured) <= WITHIN_BYTES[name]
    if name in WITHIN_SHARE:
        return abs(predicted / measured - 1) <= WITHIN_SHARE[name]
    return predicted == measured


def page_text(points: Sequence[Measurement]) -> str:
    """Return the table of the page, with the counts above it."""
    rows = [row for point in points for row in rows_of(point)]
    hits, misses = (sum(row.hit is wanted for row in rows) for wanted in (True, False))
    lines = [
        f"{len(rows)} figures of {len(points)} measurements: {hits} predictions hit, {misses} missed, "
        f"{len(rows) - hits - misses} figures have no prediction.",
        "",
        "| model | chip | converter | figure | measured | predicted | | predicted on | source |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        point, verdict = row.point, {True: "hit", False: "**miss**", None: "–"}[row.hit]
        note = f"; {point.note}" if point.note else ""
        date = point.predicted.date if point.predicted and row.predicted else "–"
        lines.append(
            f"| {point.model} | {point.chip} | {point.converter or '–'} | {row.what} | {row.measured} | "
            f"{row.predicted or '–'} | {verdict} | {date} | {point.source}{note} |"
        )
    return "\n".join(lines) + "\n"


def ledger_text(points: Sequence[Measurement]) -> str:
    """Return the whole ledger."""
    return f"{HEAD}{TITLE}\n" + "\n".join(map(point_text, points))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each figure; misses do not change the exit code, they are what the ledger is for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--predict", action="store_true", help="predict what has no prediction yet")
    parser.add_argument("--write", action="store_true", help="write docs/ledger.md")
    given = parser.parse_args(arguments)
    points = list(read_ledger(LEDGER))
    if given.predict:
        today = datetime.date.today().isoformat()
        points = [one if one.predicted else replace(one, predicted=predict(one, today)) for one in points]
        write_file(LEDGER, ledger_text(points).encode())
    for point in points:
        for row in rows_of(point):
            verdict = {True: "hit ", False: "MISS", None: "    "}[row.hit]
            print(f"{verdict}  {point.chip:9} {point.model:22} {row.what:9} {row.measured:>22}  {row.predicted}")
    if given.write:
        text = PAGE.read_text("utf-8")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        write_file(PAGE, f"{before}{BEGIN}\n{page_text(points)}\n{END}{after}".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
