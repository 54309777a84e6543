"""Fit the constants of the cycle model on measured latencies, and predict each one by a fit on all others.

There are hardly more points than constants, so a fit is a maximum a posteriori estimate: relative errors of 5 % are as good
as a constant that is one standard deviation off its prior. Constants are fitted as logarithms, so none becomes negative.

Example:
    >>> found = fit([Measured(work, 1.027)], public_prior())
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np

from openneutron.board.workload import Constants, Vector, Workload, constants_in_files

TOLERANCE = 0.05  # relative error of one point that weighs as much as one constant a standard deviation off its prior
POSTERIOR = "posterior.toml"  # written by benchmarks/calibrate.py
_STEP = 1e-2  # even the smallest constant moves by several 1/1024 cycle


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
class Prior:
    """What is believed of the constants before a fit: logarithms of cycles, and a matrix that turns a deviation from them
    into independent standard deviations."""

    logs: Vector
    whiten: Vector

    @staticmethod
    def of_factors(cycles: Sequence[float], factors: Sequence[float]) -> Prior:
        """Return the prior of independent constants, each with an uncertainty factor."""
        return Prior(np.log(cycles), np.diag(1 / np.log(factors)))


def fit(points: Sequence[Measured], prior: Prior, rounds: int = 40) -> Vector:
    """Return the fitted constants in cycles, by Levenberg and Marquardt's method."""
    logs, damping = prior.logs.copy(), 1e-2
    here = _residuals(points, prior, logs)
    for _ in range(rounds):
        slopes = _slopes(points, prior, logs, here)
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


def precision(points: Sequence[Measured], prior: Prior, constants: Vector) -> Vector:
    """Return the inverse covariance of the logarithms around a fit."""
    logs = np.log(constants)
    slopes = _slopes(points, prior, logs, _residuals(points, prior, logs))
    return np.asarray(slopes.T @ slopes)


def left_out(points: Sequence[Measured], prior: Prior) -> list[float]:
    """Return the relative error of each point, predicted by a fit on all others that are not of its group."""
    found = []
    for point in points:
        others = [one for one in points if one is not point and not (point.group and one.group == point.group)]
        found.append(point.error(fit(others, prior)))
    return found


@cache
def public_prior() -> Prior:
    """Return what all published latencies say about the constants: those of the target files, and how sure they are."""
    text = (resources.files(__package__) / POSTERIOR).read_text("utf-8")
    rows = np.array(tomllib.loads(text)["precision"], np.float64)
    return Prior(np.log(constants_in_files()), np.asarray(np.linalg.cholesky(rows).T, np.float64))


def _residuals(points: Sequence[Measured], prior: Prior, logs: Vector) -> Vector:
    constants = np.exp(logs)
    misses = [math.log1p(point.error(constants)) / TOLERANCE for point in points]
    return np.array([*misses, *(prior.whiten @ (logs - prior.logs))])


def _slopes(points: Sequence[Measured], prior: Prior, logs: Vector, here: Vector) -> Vector:
    moved = [(_residuals(points, prior, logs + _STEP * unit) - here) / _STEP for unit in np.eye(len(logs))]
    return np.stack(moved, 1)
