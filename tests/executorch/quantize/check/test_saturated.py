"""Clear answers hide noise: the warning measures it before the softmax or sigmoid, and says nothing where nothing is hidden."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from openneutron.executorch.quantize.accuracy import compare_outputs, run_all
from openneutron.executorch.quantize.check.saturated import saturated_warnings

SAMPLES = [(torch.full((1, 4), 1.0 if at % 2 else -1.0),) for at in range(8)]


class Net(nn.Module):
    """Two classes whose scores are `gain` apart, made into probabilities."""

    def __init__(self, kind: str, gain: float) -> None:
        super().__init__()
        self.kind, self.score = kind, nn.Linear(4, 2)
        self.score.weight.data = torch.tensor([[1.0] * 4, [-1.0] * 4]) * gain / 8
        self.score.bias.data.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.score(x)
        if self.kind == "softmax":
            return scores.softmax(-1).reshape(2)
        return scores.sigmoid() if self.kind == "sigmoid" else scores


def warnings(kind: str, gain: float, shift: float) -> tuple[str, ...]:
    """Those for a network whose first score is off by `shift`, in place of rounding."""
    model = Net(kind, gain).eval()
    other = copy.deepcopy(model)
    other.score.bias.data[0] += shift
    right, ours = (torch.export.export(one, SAMPLES[0]).module(check_guards=False) for one in (model, other))
    outputs = compare_outputs(run_all(right, SAMPLES), run_all(ours, SAMPLES))
    return saturated_warnings(ours, right, SAMPLES, outputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_noise_behind_clear_answers_is_told(kind: str) -> None:
    (told,) = warnings(kind, 24.0, 1.0)
    assert told.startswith("output 0: the samples have clear answers only") and f"before its {kind}" in told
    assert ("6.0 dB" if kind == "softmax" else "9.0 dB") in told  # the shift is in one of two inputs of the sigmoid


@pytest.mark.parametrize(
    ("kind", "gain", "shift"),
    [("softmax", 24.0, 0.1), ("softmax", 1.0, 1.0), ("sigmoid", 1.0, 0.4), ("nothing", 24.0, 1.0)],
    ids=["little noise", "answers that are not clear", "a figure that tells", "no softmax"],
)
def test_nothing_is_said_where_nothing_is_hidden(kind: str, gain: float, shift: float) -> None:
    assert warnings(kind, gain, shift) == ()


def test_a_mask_that_forbids_all_answers_but_one_hides_nothing() -> None:
    class Masked(nn.Module):
        def __init__(self, low: float) -> None:
            super().__init__()
            self.low = low

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.masked_fill(x == 0, self.low).softmax(-1)

    samples = [(row.reshape(1, 4),) for row in torch.eye(4)]
    right, ours = (
        torch.export.export(Masked(low), samples[0]).module(check_guards=False) for low in (-torch.inf, -60.0)
    )
    outputs = compare_outputs(run_all(right, samples), run_all(ours, samples))
    assert saturated_warnings(ours, right, samples, outputs) == ()  # type: ignore[arg-type]
