"""Goals: what reaches them, what is better, and which parts of an output count."""

from __future__ import annotations

import pytest
import torch

from openneutron.errors import OptionError
from openneutron.executorch.quality.goals import Goal, Measure, first_output, lowest_sqnr, measure_of, summarize
from openneutron.report.model import OutputAccuracy

FLOAT = Measure(120.0, 1.0)


def test_each_sort_of_goal() -> None:
    assert Goal(sqnr=25.0).is_reached(Measure(25.0), FLOAT) and not Goal(sqnr=25.0).is_reached(Measure(24.9), FLOAT)
    assert Goal(accuracy=0.9).is_reached(Measure(3.0, 0.9), FLOAT)
    assert Goal(drop=0.1).is_reached(Measure(3.0, 0.75), Measure(120.0, 0.85))
    with pytest.raises(OptionError, match="one goal"):
        Goal(sqnr=1.0, drop=0.1)


def test_a_share_decides_before_decibels() -> None:
    goal = Goal(accuracy=0.9)
    assert goal.is_better(Measure(10.0, 0.8), Measure(20.0, 0.7)) and goal.is_better(
        Measure(20.0, 0.8), Measure(10.0, 0.8)
    )
    assert not Goal(sqnr=30.0).is_better(Measure(20.01), Measure(20.0))


def test_perplexity_is_compared_with_that_of_float() -> None:
    goal, floating = Goal(perplexity=1.05), Measure(120.0, 0.5, loss=1.0)
    assert goal.is_labelled and not goal.is_share
    assert goal.is_reached(Measure(3.0, 0.1, loss=1.048), floating) and not goal.is_reached(
        Measure(90.0, 0.9, 1.05), floating
    )
    assert goal.is_better(Measure(1.0, loss=1.1), Measure(9.0, loss=1.2)) and not goal.is_better(FLOAT, floating)
    logits = [torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[3.0, 0.0, 0.0]])]
    found = measure_of(logits, logits, [2, 1], with_loss=True)
    assert found.accuracy == 0.5
    wanted = torch.nn.functional.cross_entropy(torch.cat(logits), torch.tensor([2, 1]))
    assert found.loss == pytest.approx(float(wanted), rel=1e-6)


def test_separate_parts_count_and_others_do_not() -> None:
    part = {"part": "columns 4..8", "part_sqnr": 3.0}
    assert lowest_sqnr([OutputAccuracy("output 0", 40.0, **part, separate=True)]) == 3.0
    assert lowest_sqnr([OutputAccuracy("output 0", 40.0, **part)]) == 40.0
    assert lowest_sqnr([OutputAccuracy("output 0", agreement=0.9)]) == pytest.approx(10.0)
    assert lowest_sqnr([OutputAccuracy("output 0", note="empty")]) == 120.0


def test_with_a_metric_its_share_is_the_figure_and_outputs_without_one_count_by_decibels() -> None:
    outputs = [OutputAccuracy("output 0", 18.0, metric="top1", kept=1.0), OutputAccuracy("output 1", 20.0)]
    assert summarize(outputs, "sqnr", 25.0) == Measure(18.0, near=19.0)
    assert summarize(outputs, "top1", 25.0) == Measure(18.0, 0.8, near=19.0)
    assert summarize(outputs[:1], "top1", 25.0).accuracy == 1.0


def test_a_part_that_stays_lost_does_not_hide_what_the_rest_gains() -> None:
    def measure(whole: float, part: float) -> Measure:
        return summarize([OutputAccuracy("y", whole, part="column 3", part_sqnr=part, separate=True)], "sqnr", 25.0)

    goal, low, high = Goal(sqnr=25.0), measure(10.0, -2.0), measure(20.0, -4.0)
    assert high.sqnr < low.sqnr and goal.is_better(high, low) and not goal.is_better(low, high)
    assert not goal.is_reached(measure(40.0, 24.0), FLOAT)


def test_the_share_of_right_classes() -> None:
    rows = [(torch.tensor([[0.0, 1.0]]),), (torch.tensor([[1.0, 0.0]]),)]
    assert measure_of(rows, rows, [1, 1]).accuracy == 0.5
    assert first_output(rows[0]).tolist() == [0.0, 1.0]
