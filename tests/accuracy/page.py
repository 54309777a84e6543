"""What the rows of the bench come to: counts, shares, and the documentation page.

Example:
    >>> silent_parts(row)
    ['output 0 axis 1 [4..21]']
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOW = 20.0  # decibels below which a part must be announced by a warning
GOAL = 25.0  # decibels that every part shall have
MORE_CYCLES = 1.2  # of the plain compile's, that may be paid for it
_WRITTEN = "<!-- Written by `make test-accuracy` (tests/accuracy/run.py). Do not edit. -->"
_INTRODUCTION = (
    "Trained networks from packages of PyPI and npm, and those of the zoo, compiled for imxrt700 by `openneutron.compile` "
    "with a few real samples and no options (*default*), and with one weight scale per tensor and no methods that improve "
    "accuracy (*plain*). Other samples are compared with float: onnxruntime, LiteRT or PyTorch."
)
_COLUMNS = (
    "*dB*: each output and, where an axis of it joins ranges that are more than 16 times apart, the worst part of it; columns "
    "of pictures and classes of probabilities are no such parts. "
    "*Task*: float's figure and INT8's; of networks without labels how much is the same as in float. *Cycles*: of the NPU, "
    "estimated; *x plain* is default's share of plain's. *Time*: of the compile, default over plain, where they differ. "
    "*Silent*: parts below 20 dB that no warning announces."
)
_HEADS = (
    "network", "what it does", "from", "plain dB", "default dB", "task, plain", "task, default", "on the NPU", "cycles",
    "x plain", "time", "silent",
)  # fmt: skip
_SAMPLES = (
    "Photographs and small faces are scikit-image's, speech is espeak-ng's, text is drawn or photographed, notes are plucked "
    "strings; for calibration and for the comparison they are different ones."
)
# The warning about the worst output as a whole does not name it.
_WHOLE = re.compile(r"the output is -?[\d.]+ dB SQNR from float")

Row = Mapping[str, Any]


def silent_parts(row: Row) -> list[str]:
    """Parts of outputs below `LOW` that no warning of the compile announces.

    A part of an output that is low as a whole, and announced, is announced with it.
    """
    low = [one["name"] for one in row.get("parts", ()) if one["sqnr"] < LOW]
    announced = {name for name in low if _announced(name, row)}
    return [name for name in low if name not in announced and name.partition(" axis ")[0] not in announced]


def _announced(part: str, row: Row) -> bool:
    """Whether a warning names the part's output, or is about the worst output as a whole and so is the part."""
    output, _, within = part.partition(" axis ")
    warnings = row.get("warnings", ())
    return any(re.search(rf"\b{output}\b", text) or (not within and _WHOLE.search(text)) for text in warnings)


def worst_part(row: Row) -> Any:
    """The part with the lowest SQNR, None where no output is a float one."""
    return min(row.get("parts", ()), key=lambda one: one["sqnr"], default=None)


def is_accurate(row: Row) -> bool:
    """Whether every part reaches `GOAL`, or the task loses no more than its metric allows."""
    if "parts" not in row:
        return False
    worst = worst_part(row)
    by_task = "int8" in row and row["int8"] >= row["float"] - row["allowed"]
    return by_task or (worst is not None and worst["sqnr"] >= GOAL)


@dataclass(frozen=True)
class Summary:
    """The three measures of the bench, and what they are of."""

    networks: int
    silent: int
    reached: int
    time_ratio: float | None
    failed: int

    def lines(self) -> list[str]:
        """The measures as sentences."""
        share = self.reached / self.networks if self.networks else 0.0
        ratio = "not measured" if self.time_ratio is None else f"{self.time_ratio:.2f}"
        return [
            f"parts of outputs below {LOW:.0f} dB without a warning: {self.silent}",
            f"networks with {GOAL:.0f} dB on every part, or their task within its bound, at {MORE_CYCLES:g} x the plain "
            f"cycles or less: {self.reached} of {self.networks} ({share:.0%})",
            f"compile time of those that are fine at once, without a search, default / plain, median: {ratio}",
            f"refused or failed: {self.failed}",
        ]


def summary(rows: Iterable[Row], variant: str = "default") -> Summary:
    """The measures of one variant, against the plain one."""
    every = list(rows)
    own = [row for row in every if row["variant"] == variant]
    plain = {row["network"]: row for row in every if row["variant"] == "plain"}
    reached = [row for row in own if is_accurate(row) and _cycles(row, plain) <= MORE_CYCLES]
    ratios = []
    for row in own:
        other = plain.get(row["network"], row)
        if "seconds" in other and row["options"] != other["options"] and row.get("searched") is False:
            ratios.append(row["seconds"] / other["seconds"])
    return Summary(
        len(own), sum(len(silent_parts(row)) for row in own), len(reached),
        statistics.median(ratios) if ratios else None, sum("parts" not in row for row in own),
    )  # fmt: skip


def _cycles(row: Row, plain: Mapping[str, Row]) -> float:
    """How many times the plain compile's cycles a row has."""
    other = plain.get(row["network"], {}).get("cycles")
    return row["cycles"] / other if other else 1.0


def page(rows: Sequence[Row], networks: Sequence[Any], versions: Mapping[str, str]) -> str:
    """The results as a documentation page, in the order of the networks."""
    found = {(row["network"], row["variant"]): row for row in rows}
    known = [one for one in networks if (one.name, "default") in found]
    current = [row for row in rows if row["network"] in {one.name for one in known}]
    lines = ["# Accuracy of trained networks", "", _WRITTEN, "", _INTRODUCTION, ""]
    measured = f"{len(known)} of {len(networks)} networks, with {', '.join(map(' '.join, versions.items()))}"
    lines += [
        f"Measured: {measured}.",
        "",
        *(f"- {line[0].upper()}{line[1:]}." for line in summary(current).lines()),
        "",
    ]
    lines += [_COLUMNS, "", f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|"]
    for one in known:
        lines.append(_line(one, found.get((one.name, "plain"), {}), found[one.name, "default"]))
    lines += ["", "## Samples", ""]
    lines += [_SAMPLES, "", "| network | calibration | compared | file |", "|---|---|---|---|"]
    lines += [f"| {one.name} | {one.calibration} | {one.tested} | {one.package}: {one.file} |" for one in known]
    told = [(one, found[one.name, "default"]) for one in known]
    lines += ["", "## Warnings and refusals of the default", ""]
    for one, row in told:
        for text in [row["refused"]] if "refused" in row else [row["failed"]] if "failed" in row else row["warnings"]:
            lines.append(f"- {one.name}: {' '.join(text.split())}")
    return "\n".join(lines) + "\n"


def _line(network: Any, plain: Row, row: Row) -> str:
    head = f"| {network.name} | {network.does} | {network.package} | {_decibels(plain)} | {_decibels(row)} |"
    if "parts" not in row:
        return f"{head} {_task(plain)} | | | | | | |"
    times = row["cycles"] / plain["cycles"] if plain.get("cycles") else 1.0
    compiled = (
        f"{row['seconds'] / plain['seconds']:.2f}" if "seconds" in plain and plain["options"] != row["options"] else ""
    )
    return (
        f"{head} {_task(plain)} | {_task(row)} | {row['delegated']} of {row['nodes']} | {row['cycles']:,} | {times:.2f} | "
        f"{compiled} | {len(silent_parts(row))} |"
    )


def _decibels(row: Row) -> str:
    """The figures of a row: of each output, and of the worst part of one behind it."""
    if "parts" not in row:
        return "refused" if "refused" in row else "failed" if "failed" in row else ""
    made: dict[str, list[float]] = {}
    for one in row["parts"]:
        made.setdefault(one["name"].partition(" axis ")[0], []).append(one["sqnr"])
    shown = (f"{own[0]:.1f}" + (f" (part {min(own[1:]):.1f})" if own[1:] else "") for own in made.values())
    return " / ".join(shown) or "no float output that changes"


def _task(row: Row) -> str:
    if "int8" not in row:
        return ""
    if row["float"] == 1.0:
        return f"{row['metric']}: {row['int8']:.1%}"
    return f"{row['metric']}: {row['float']:.1%} to {row['int8']:.1%}"
