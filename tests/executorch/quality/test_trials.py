"""Trials judge samples that set no ranges, where there are enough."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.export import export

from openneutron.executorch.quality.goals import Measure, measure_parts
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quantize.choices import Choices
from tests.executorch.quality.networks import Stream, rows


def made() -> Trials:
    model, samples = Stream().eval(), rows(24)
    with torch.no_grad():
        wanted = [model(*one) for one in samples[:16]]
    return Trials(
        export(model, samples[0]), samples, samples[:16], wanted,
        lambda found: measure_parts(found, wanted[: len(found)], [], "sqnr", 25.0),
    )  # fmt: skip


def test_a_third_of_the_samples_set_no_ranges() -> None:
    trials = made()
    apart = trials.hold_out()
    assert apart is not None and apart.held == min(16, len(trials.calibration) // 3)
    assert len(apart.calibration) + apart.held == len(trials.calibration) and apart.samples == trials.samples
    assert replace(trials, calibration=trials.calibration[:9]).hold_out() is None


def test_the_worse_of_held_out_and_all_samples_counts() -> None:
    apart = made().hold_out()
    assert apart is not None
    figures: list[Measure] = []

    def judge(found: object) -> Measure:
        figures.append(Measure(20.0 + len(figures)))
        return figures[-1]

    apart.judge = judge
    assert apart.measure(Choices()).sqnr == 20.0 and len(figures) == 2
