"""Learn from a user's own measurements: refit the latency model with the points of a ledger.

What the published latencies say about the constants is the prior; the points move them as far as they outweigh it. The errors
behind the interval are those of the published latencies and of the user's points, each predicted without itself.

Example:
    >>> lesson = learn_from("points.toml")
    >>> [(one.point.model, round(one.before, 2), round(one.after, 2)) for one in lesson.points]
    [('model.tflite', 0.11, 0.02)]
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from openneutron.board.answer import converted_by_stock
from openneutron.board.fit import Learned, Measured, believe, left_out, public_prior
from openneutron.board.interval import LEFT_OUT
from openneutron.board.ledger import Measurement, read_ledger
from openneutron.board.sdk import version_of
from openneutron.board.workload import NEUTRON_C, constants_in_files, workload_of
from openneutron.errors import FormatError, OptionError
from openneutron.files import kind_of, read_file
from openneutron.machine import targets


@dataclass(frozen=True)
class Known:
    """A point with the relative errors of its estimate: without any of the user's points, and learned from the others."""

    point: Measurement
    before: float
    after: float


@dataclass(frozen=True)
class Lesson:
    """What a ledger teaches; `skipped` says of each point that teaches nothing why."""

    learned: Learned
    points: tuple[Known, ...]
    skipped: tuple[str, ...]


def learn(path: str | os.PathLike[str]) -> Learned:
    """Return the constants and errors that a ledger teaches, for estimates."""
    return learn_from(path).learned


def learn_from(path: str | os.PathLike[str]) -> Lesson:
    """Fit the constants on the points of a ledger; its models are read from beside it."""
    where = os.path.abspath(path)
    return _learn(where, hashlib.sha256(read_file(path)).hexdigest())


@lru_cache(maxsize=4)
def _learn(path: str, digest: str) -> Lesson:
    used: list[tuple[Measurement, Measured]] = []
    skipped = []
    for number, point in enumerate(read_ledger(path), 1):
        reason = _unusable(point)
        if reason:
            skipped.append(f"point {number} ({point.model}) {reason}")
        else:
            used.append((point, _plan_point(point, Path(path), number)))
    if not used:
        raise OptionError(
            "no point of this ledger can be learned from", where=path,
            hint="; ".join(skipped) or "add points with `openneutron board profile --ledger`",
        )  # fmt: skip
    prior = public_prior()
    measured = [one for _, one in used]
    public = constants_in_files()
    before = [one.error(public) for one in measured]
    after = [one.error for one in left_out(measured, prior)]
    errors = (*LEFT_OUT, *(math.log1p(one) for one in after))
    learned = Learned(believe(measured, prior), errors, len(measured), os.path.basename(path))
    points = tuple(Known(point, b, a) for (point, _), b, a in zip(used, before, after, strict=True))
    return Lesson(learned, points, tuple(skipped))


def _unusable(point: Measurement) -> str:
    """Why nothing can be learned from a point, "" when something can."""
    if not point.milliseconds:
        return "has no milliseconds"
    name = targets.canonical_name(point.chip)
    if name not in NEUTRON_C:
        return f"is of {name}, and times are learned for {' and '.join(NEUTRON_C)}"
    return ""


def _plan_point(point: Measurement, ledger: Path, number: int) -> Measured:
    """Plan the model of a measured point as NXP's converter would, at the clocks of the measurement."""
    where = f"{ledger}, point {number}"
    file = ledger.parent / point.model
    if not file.is_file():
        raise OptionError(
            f"its model {point.model!r} is not there", where=where,
            hint=f"put the LiteRT file from before NXP's converter at {file}, or correct `model`",
        )  # fmt: skip
    data = read_file(file)
    if point.sha256 and hashlib.sha256(data).hexdigest() != point.sha256:
        raise OptionError(
            f"{point.model} is not the model that was measured: its SHA-256 is another one", where=where,
            hint="restore the file, or measure the new one",
        )  # fmt: skip
    if kind_of(data) != "tflite":
        raise FormatError(
            f"{point.model} is no LiteRT file", where=where, hint="name the .tflite from before NXP's converter"
        )
    target = targets.load(targets.canonical_name(point.chip))
    as_measured = replace(
        target, clock_hz=point.npu_hz or target.clock_hz, cpu_clock_hz=point.cpu_hz or target.cpu_clock_hz
    )
    sdk = version_of(point.converter)
    made = converted_by_stock(data, target, fetch_constants=point.fetch_constants, source=str(file), sdk=sdk)
    return Measured(workload_of(made, as_measured), point.time)
