"""Metrics of what outputs mean: when one is recognized, and what it is for answers that are kept and lost."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.run.compare_arrays import compare_arrays
from openneutron.run.compare_metrics import measure_metric, recognize_metric

RNG = np.random.default_rng(0)
SHARES = RNG.dirichlet(np.ones(10), (8, 1))
LOGITS = RNG.normal(size=(8, 1, 10))
MASK = (RNG.random((4, 1, 1, 16, 16)) > 0.5).astype(np.float32) * 0.9
SCORES = RNG.random((4, 1, 50))
BOXES = np.sort(RNG.random((4, 1, 20, 2, 2)), axis=3).reshape(4, 1, 20, 4)
CASES = {
    "probabilities": (SHARES, "top1"), "logits": (LOGITS, "top1"), "a mask": (MASK, "iou"), "scores": (SCORES, "rank"),
    "boxes": (BOXES, "boxes"), "an embedding of length 1": (LOGITS / np.linalg.norm(LOGITS, axis=-1, keepdims=True), ""),
    "a spectrogram": (RNG.normal(size=(4, 1, 40, 60)), ""), "a long signal": (RNG.normal(size=(2, 1, 16000)), ""),
    "not all numbers": (np.full((2, 3), np.inf), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_recognized(name: str) -> None:
    values, metric = CASES[name]
    assert recognize_metric(values) == metric
    if metric:
        assert measure_metric(metric, values, values) == pytest.approx(1.0)
        assert measure_metric(metric, values, np.flip(values, -1)) < 0.9


def test_classes_that_change() -> None:
    found = SHARES.copy()
    found[0, 0, SHARES[0, 0].argmax()] = 0
    assert measure_metric("top1", SHARES, found) == pytest.approx(7 / 8)


def test_scores_that_become_a_few_values() -> None:
    assert 0.5 < measure_metric("rank", SCORES, np.round(SCORES * 3) / 3) < 1
    assert measure_metric("rank", SCORES, np.zeros_like(SCORES)) == 0


def test_empty_masks_agree_and_boxes_apart_do_not() -> None:
    assert measure_metric("iou", np.zeros((2, 9, 9)), np.zeros((2, 9, 9))) == 1
    assert measure_metric("boxes", BOXES, BOXES + 5) == 0
    assert measure_metric("boxes", np.zeros((2, 3)), np.zeros((2, 3))) == -1


def test_an_output_has_its_metric_beside_its_decibels() -> None:
    found = compare_arrays("output 0", SHARES, SHARES * 0.99)
    assert (found.metric, found.kept) == ("top1", 1.0) and found.sqnr == pytest.approx(40.0)
    assert compare_arrays("output 0", SHARES, SHARES, metric="rank").metric == "rank"
