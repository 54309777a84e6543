"""Fit the constants of the cycle model on measured latencies, and predict each one by a fit on all others.

There are hardly more points than constants, so a fit is a maximum a posteriori estimate: relative errors of 5 % are as good
as a constant that is one standard deviation off its prior. Constants are fitted as logarithms, so none becomes negative.

Example:
    >>> found = fit([Measured(work, 1.027)], public_prior())
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from openneutron.board.workload import Constants, Vector, Workload, constants_in_files

TOLERANCE = 0.05  # relative error of one point that weighs as much as one constant a standard deviation off its prior
POSTERIOR = "posterior.toml"  # written by benchmarks/calibrate.py
ASSUMED_FACTOR = 2.0  # by which CPU work with an assumed cost may be off, in one standard deviation (assumed)


@dataclass(frozen=True)
class Measured:
    """A workload and the latency that was measured for it."""

    work: Workload
    milliseconds: float

    @property
    def group(self) -> str:
        """What is left out together with this point, "" for nothing else: other times of the same network on the same chip."""
        return ""

    def error(self, constants: Constants) -> float:
        """Return the relative error of the model with these constants."""
        return self.work.milliseconds(constants) / self.milliseconds - 1


@dataclass(frozen=True)
class Belief:
    """What is believed of the constants, before or after a fit: logarithms of cycles, and a matrix that turns a deviation
    from them into independent standard deviations."""

    logs: Vector
    whiten: Vector

    @staticmethod
    def of_factors(cycles: Sequence[float], factors: Sequence[float]) -> Belief:
        """Return the belief in independent constants, each with an uncertainty factor."""
        return Belief(np.log(cycles), np.diag(1 / np.log(factors)))

    @staticmethod
    def of_precision(constants: Vector, rows: Vector) -> Belief:
        """Return the belief in constants with the inverse covariance of their logarithms."""
        return Belief(np.log(constants), np.asarray(np.linalg.cholesky(rows).T, np.float64))

    @property
    def constants(self) -> Vector:
        """The constants in cycles, in the order of `NAMES`."""
        return np.exp(self.logs)

    def doubt(self, work: Workload) -> float:
        """Return the variance that is left in the logarithm of a latency: by these constants, and by assumed costs."""
        deviations = np.linalg.solve(self.whiten.T, work.slopes(self.constants))
        assumed = work.assumed_share(self.constants) * math.log(ASSUMED_FACTOR)
        return float(deviations @ deviations) + assumed**2


@dataclass(frozen=True)
class Learned:
    """What measurements teach: the belief in the constants, and left-out errors as logarithms.

    `count` is the number of a user's own points in them, `source` the ledger's name.
    """

    belief: Belief
    errors: tuple[float, ...]
    count: int
    source: str

    def note(self) -> str:
        """Return the sentence that a report has about it."""
        points = f"{self.count} point{'s' if self.count != 1 else ''} of {self.source}"
        return f"the time is learned from {points} beside the published latencies"


def fit(points: Sequence[Measured], prior: Belief, rounds: int = 40) -> Vector:
    """Return the fitted constants in cycles, by Levenberg and Marquardt's method."""
    logs, damping = prior.logs.copy(), 1e-2
    here = _residuals(points, prior, logs)
    for _ in range(rounds):
        slopes = _slopes(points, prior, logs)
        normal = slopes.T @ slopes
        move = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -slopes.T @ here)
        there = _residuals(points, prior, logs + move)
        if there @ there < here @ here:
            logs, here, damping = logs + move, there, damping / 3
        else:
            damping *= 5
        if np.abs(move).max() < 1e-4:
            break
    return np.exp(logs)


def precision(points: Sequence[Measured], prior: Belief, constants: Vector) -> Vector:
    """Return the inverse covariance of the logarithms around a fit."""
    logs = np.log(constants)
    slopes = _slopes(points, prior, logs)
    return np.asarray(slopes.T @ slopes)


def believe(points: Sequence[Measured], prior: Belief) -> Belief:
    """Return what is believed of the constants after these points."""
    constants = fit(points, prior)
    return Belief.of_precision(constants, precision(points, prior, constants))


class LeftOut(NamedTuple):
    """The relative error of a point's prediction, and its doubt, by a fit without it."""

    error: float
    doubt: float


def left_out(points: Sequence[Measured], prior: Belief) -> list[LeftOut]:
    """Predict each point by a fit on all others that are not of its group."""
    found = []
    for point in points:
        others = [one for one in points if one is not point and not (point.group and one.group == point.group)]
        belief = believe(others, prior)
        found.append(LeftOut(point.error(belief.constants), belief.doubt(point.work)))
    return found


@cache
def public_prior() -> Belief:
    """Return what all published latencies say about the constants: those of the target files, and how sure they are."""
    # Not by importlib.resources: its import costs more than the rest of an answer.
    with open(os.path.join(os.path.dirname(__file__), POSTERIOR), "rb") as file:
        rows = np.array(tomllib.load(file)["precision"], np.float64)
    return Belief.of_precision(constants_in_files(), rows)


def _residuals(points: Sequence[Measured], prior: Belief, logs: Vector) -> Vector:
    constants = np.exp(logs)
    misses = [math.log1p(point.error(constants)) / TOLERANCE for point in points]
    return np.array([*misses, *(prior.whiten @ (logs - prior.logs))])


def _slopes(points: Sequence[Measured], prior: Belief, logs: Vector) -> Vector:
    return np.vstack([*(point.work.slopes(np.exp(logs)) / TOLERANCE for point in points), prior.whiten])
