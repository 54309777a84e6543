from __future__ import annotations

import numpy as np
import pytest

from openneutron.analyze.accuracy import Labelled, Predictor, fit_samples, in_frames, label_samples, score
from openneutron.errors import OptionError
from openneutron.litert.graph import DType, Quantization, Tensor


def test_every_sample_is_asked_once_and_the_last_batch_is_filled_up() -> None:
    data = label_samples(np.eye(5, dtype=np.float32), np.arange(5))
    seen: list[int] = []

    def predict(x):
        seen.append(len(x))
        return x

    found = score("x", Predictor(predict), data, batch=2)
    assert (found.correct, found.total, found.accuracy, seen) == (5, 5, 1.0, [2, 2, 2])
    wrong = score("y", Predictor(lambda x: -x), data, batch=5)
    assert wrong.correct == 0 and wrong.agreement(found) == 0.0


def test_progress_names_the_form_and_the_count() -> None:
    lines: list[str] = []
    score(".pte", Predictor(lambda x: x), label_samples(np.eye(3), np.arange(3)), progress=lines.append)
    assert lines == [".pte: 0 of 3", ".pte: 1 of 3", ".pte: 2 of 3"]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((3, 2)), np.zeros(3), "one class number"),
        (np.zeros((3, 2)), np.zeros((3, 1), np.int64), "one class number"),
        (np.zeros((3, 2)), np.zeros(4, np.int64), "x has 3 samples, y has 4"),
        (np.zeros((0, 2)), np.zeros(0, np.int64), "x has 0 samples"),
    ],
    ids=["float classes", "two dimensions", "lengths", "empty"],
)
def test_data_that_does_not_fit_is_refused(x, y, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        label_samples(x, y)


def test_float_samples_are_quantized_as_the_input_is() -> None:
    tensor = Tensor("x", (1, 2), DType.INT8, Quantization((0.5,), (3,)))
    found = fit_samples(Labelled(np.float32([[1.0, -100.0], [0.26, 0.25]]), np.arange(2)), tensor, where="m")
    assert found.x.tolist() == [[5, -128], [4, 3]] and found.x.dtype == np.int8
    same = Labelled(np.int8([[1, 2]]), np.arange(1))
    assert fit_samples(same, tensor, where="m") is same


@pytest.mark.parametrize(
    ("x", "message"),
    [(np.zeros((1, 3), np.float32), r"a sample of x is \[3\]"), (np.zeros((1, 2), np.uint8), "x is uint8")],
)
def test_samples_of_another_shape_or_type_are_refused(x, message: str) -> None:
    tensor = Tensor("x", (1, 2), DType.INT8, Quantization((0.5,), (3,)))
    with pytest.raises(OptionError, match=message):
        fit_samples(Labelled(x, np.arange(1)), tensor, where="m")


class Counter:
    """Answers with the sum of what it heard since it was reset."""

    def __init__(self) -> None:
        self.total = np.zeros((1, 3))

    def predict(self, x: np.ndarray) -> np.ndarray:
        self.total = self.total + x
        return self.total

    def reset(self) -> None:
        self.total = np.zeros((1, 3))


def test_a_sequence_is_heard_from_its_beginning_and_its_last_frame_answers() -> None:
    x = np.array([[[1, 0, 0], [0, 3, 0], [0, 0, 2]], [[0, 0, 5], [1, 0, 0], [0, 1, 0]], [[1, 0, 0]] * 3])
    counter = Counter()
    data = in_frames(label_samples(x, np.array([1, 2, 0])), (3,), where="x")
    assert data.frames
    assert score("x", Predictor(counter.predict, counter.reset), data).correct == 3
    # What the first sequence left would decide the last.
    assert score("x", Predictor(counter.predict), data).correct < 3


def test_samples_and_sequences_are_told_apart_by_their_shape() -> None:
    y = np.array([0, 1])
    assert not in_frames(label_samples(np.zeros((2, 3)), y), (3,), where="x").frames
    with pytest.raises(OptionError, match=r"a sample of x is \[4\].*takes \[3\], or a sequence"):
        in_frames(label_samples(np.zeros((2, 4)), y), (3,), where="x")
    tensor = Tensor("x", (1, 3), DType.INT8, Quantization((0.5,), (1,)))
    fitted = fit_samples(label_samples(np.ones((2, 7, 3), np.float32), y), tensor, where="x")
    assert fitted.frames and fitted.x.dtype == np.int8 and fitted.x.shape == (2, 7, 3)


def test_many_inputs_at_a_time_are_answered_as_one_by_one() -> None:
    data = label_samples(np.random.default_rng(0).standard_normal((301, 4)), np.arange(301) % 4)
    asked: list[int] = []

    def many(inputs: list[np.ndarray]) -> list[np.ndarray]:
        asked.append(len(inputs))
        return inputs

    for batch in (1, 2):
        together = score("x", Predictor(lambda x: 0 / 0, predict_many=many), data, batch=batch)
        assert np.array_equal(together.answers, score("x", Predictor(lambda x: x), data, batch=batch).answers)
    assert sum(asked) == 301 + 151 and max(asked) < 301  # not all of the data at once
