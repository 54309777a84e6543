"""Accuracy of a model in its forms on labelled data: float, quantized in PyTorch, compiled.

Example:
    >>> data = labelled(samples, classes)
    >>> score("float", Predictor(lambda batch: predict(batch)), data, batch=1).accuracy
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.errors import OptionError
from openneutron.litert.graph import Tensor

Array = npt.NDArray[Any]
Progress = Callable[[str], None]
Predict = Callable[[Array], Array]

CONFIDENCE_95 = 1.96  # standard deviations of a normal distribution on either side

# Inputs given to `predict_many` at a time: enough for several threads, few enough to be copied.
_TOGETHER = 128

# Calls of `progress` per form: often enough to show movement, seldom enough to cost nothing.
_STEPS = 200


@dataclass(frozen=True)
class Labelled:
    """Samples and their classes; with `frames` each sample is a sequence of the model's inputs."""

    x: Array
    y: Array
    frames: bool = False

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Score:
    """The predictions of one form of a model; `answers` are the predicted classes, one per sample."""

    name: str
    correct: int
    total: int
    seconds: float
    answers: Array = field(repr=False)

    @property
    def accuracy(self) -> float:
        """Share of correct predictions, 0 to 1."""
        return self.correct / self.total if self.total else 0.0

    def agreement(self, other: Score) -> float:
        """Return the share of samples for which both predict the same class."""
        return float((self.answers == other.answers).mean()) if self.total else 1.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval of the accuracy on all data like these (Wilson's interval).

        Example:
            >>> low, high = Score("float", 857, 1000, 1.0, answers).interval()
            >>> round(low, 3), round(high, 3)
            (0.834, 0.877)
        """
        if not self.total:
            return 0.0, 1.0
        n, share, z = self.total, self.accuracy, CONFIDENCE_95
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def difference(self, other: Score, labels: Array, *, z: float = 0.0) -> tuple[float, float, float]:
        """Return this accuracy minus the other's, and both ends of its confidence interval (95 % by default).

        Both predicted the same samples, so only those with one correct and one wrong prediction count (McNemar). Two forms that
        nearly always agree are distinguished with far fewer samples than two independent accuracies would need.
        """
        right, before = self.answers == labels, other.answers == labels
        gained, lost = int((right & ~before).sum()), int((before & ~right).sum())
        n = max(1, self.total)
        found = (gained - lost) / n
        # As in Wilson's interval: a few samples with hardly any change cannot rule out changes in others.
        z = z or CONFIDENCE_95
        half = (z * math.sqrt(gained + lost - (gained - lost) ** 2 / n + z * z / 4) + z * z / 2) / n
        return found, found - half, found + half


def _reset_nothing() -> None:
    """Do nothing: for models without state."""


@dataclass(frozen=True)
class Predictor:
    """A model that predicts: `predict` returns a row of scores per sample, `reset` clears the state left by earlier frames.

    `predict_many` does the same as `predict` for several inputs, in less time.
    """

    predict: Predict
    reset: Callable[[], None] = _reset_nothing
    predict_many: Callable[[list[Array]], list[Array]] | None = None


@dataclass(frozen=True)
class Form:
    """A form of a model:

    `make` returns a predictor, called in the process that uses it; `fit` converts samples to its input.
    """

    name: str
    make: Callable[[], Predictor]
    batch: int = 1
    fit: Callable[[Labelled], Labelled] = lambda data: data


def label_samples(x: Array, y: Array, *, where: str = "", limit: int = 0) -> Labelled:
    """Return checked data, cut to the first `limit` samples (0: all)."""
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise OptionError(
            f"y is {y.dtype} {list(y.shape)}", where=where, hint="y must be one class number (an integer) per sample"
        )
    if x.ndim < 1 or len(x) != len(y) or not len(y):
        raise OptionError(f"x has {len(x) if x.ndim else 0} samples, y has {len(y)}", where=where)
    count = min(limit, len(y)) if limit else len(y)
    return Labelled(x[:count], y[:count])


def score(name: str, asked: Predictor, data: Labelled, *, batch: int = 1, progress: Progress | None = None) -> Score:
    """Predict every sample, `batch` at a time; the last batch is filled up by repeating its last sample.

    The class with the largest score is the prediction; for a sequence, the scores after its last frame count.
    """
    began = time.perf_counter()
    answers = np.empty(len(data), np.int64)
    many = asked.predict_many if not data.frames else None
    step = batch * (_TOGETHER if many else 1)
    every = max(len(data) // step // _STEPS, 1)
    for start in range(0, len(data), step):
        if progress is not None and (start // step) % every == 0:
            progress(f"{name}: {start:,} of {len(data):,}")
        firsts = range(start, min(start + step, len(data)), batch)
        inputs = [_fill_batch(data.x[first : first + batch], batch) for first in firsts]
        found = (
            many(inputs)
            if many
            else [_predict_sequences(asked, x) if data.frames else asked.predict(x) for x in inputs]
        )
        for first, rows in zip(firsts, found, strict=True):
            classes = np.asarray(rows).reshape(batch, -1).argmax(axis=1)
            answers[first : first + batch] = classes[: len(data) - first]
    return Score(name, int((answers == data.y).sum()), len(data), time.perf_counter() - began, answers)


def _fill_batch(x: Array, batch: int) -> Array:
    return x if len(x) == batch else np.concatenate([x, np.repeat(x[-1:], batch - len(x), axis=0)])


def _predict_sequences(asked: Predictor, sequences: Array) -> Array:
    """Run the model over sequences from their first frame and return the scores after the last."""
    asked.reset()
    answers = [asked.predict(np.ascontiguousarray(sequences[:, at])) for at in range(sequences.shape[1])]
    return answers[-1]


def in_frames(data: Labelled, sample: tuple[int, ...], *, where: str) -> Labelled:
    """Mark the data as sequences if it has one more axis than a sample of the model; refuse data that fits neither."""
    given = tuple(data.x.shape[1:])
    if given == sample:
        return data
    if given[1:] == sample and given[0]:
        return replace(data, frames=True)
    raise OptionError(
        f"a sample of x is {list(given)}", where=where,
        hint=f"the model takes {list(sample)}, or a sequence of them ([frames, …])",
    )  # fmt: skip


def fit_samples(data: Labelled, tensor: Tensor, *, where: str) -> Labelled:
    """Convert samples for a LiteRT input: float ones are quantized, others must have its type already."""
    wanted = tensor.dtype.numpy
    data = in_frames(data, tensor.shape[1:], where=where)
    if data.x.dtype == wanted:
        return data
    quantized = tensor.quantization is not None and len(tensor.quantization.scale) == 1
    if data.x.dtype.kind != "f" or not (quantized or wanted.kind == "f"):
        raise OptionError(f"x is {data.x.dtype}", where=where, hint=f"give {wanted}, or float to have it quantized")
    if wanted.kind == "f":
        return replace(data, x=data.x.astype(wanted))
    assert tensor.quantization is not None
    scale, zero_point = tensor.quantization.scalar
    limits = np.iinfo(wanted)
    steps = np.clip(np.rint(data.x / scale) + zero_point, limits.min, limits.max)
    return replace(data, x=steps.astype(wanted))
