"""What calibration data leaves open: few samples, samples that are alike, ranges and states that still grow."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.check.calibration import CalibrationWatch
from openneutron.executorch.quantize.pt2e import Findings, calibrate, prepare

Samples = list[tuple[torch.Tensor, ...]]


class Running(nn.Module):
    """A sum, an average that forgets, a counter of calls and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        for name in ("total", "average"):
            self.register_buffer(name, torch.zeros(1, 4))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.layer(x)
        self.total += x.abs()
        self.average.copy_(0.5 * self.average + 0.5 * x)
        self.count += 1
        return self.total + 0, self.average + 0, self.count + 0


def findings(model: nn.Module, samples: Samples, **how: float) -> Findings:
    """What a calibration with these samples finds."""
    found = Findings()
    calibrate(prepare(export(model.eval(), samples[0]), NeutronQuantizer()), samples, found=found, **how)
    return found


def noise(count: int) -> Samples:
    """Samples of one distribution."""
    torch.manual_seed(0)
    return [(torch.rand(1, 4) - 0.5,) for _ in range(count)]


CASES: dict[str, tuple[Samples, Sequence[str]]] = {
    "enough": (noise(64), []),
    "few": (noise(2), ["calibration has 2 samples"]),
    "alike": ([(torch.arange(4.0)[None],)] * 16, ["all 16 calibration samples are nearly the same"]),
    "louder and louder": (
        [((at + 1) * torch.ones(1, 4),) for at in range(8)], ["the last of 8 calibration samples still widened"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_is_one_line_for_each_thing_that_samples_leave_open(name: str) -> None:
    samples, wanted = CASES[name]
    notes = findings(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), samples).notes
    assert len(notes) == len(wanted) and all(note.startswith(one) for note, one in zip(notes, wanted, strict=True))


def test_a_state_that_grows_is_a_warning_with_its_range_unless_it_gets_room() -> None:
    torch.manual_seed(0)
    model = Running()
    (warning,) = findings(model, noise(16)).warnings
    assert warning.startswith("state total still grows after 16 calibration samples: it is stored from 0 to ")
    assert findings(model, noise(16), state_headroom=4.0).warnings == []


class Faded(nn.Module):
    """A layer times a factor that each call changes, without end or in turns."""

    def __init__(self, turns: bool) -> None:
        super().__init__()
        self.layer, self.turns = nn.Linear(4, 4), turns
        self.register_buffer("factor", torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.factor.copy_((self.factor + 1) % 4 if self.turns else self.factor * 1.1)
        return self.layer(x) * self.factor


@pytest.mark.parametrize("turns", [False, True], ids=["without end", "in turns"])
def test_a_counter_that_something_quantized_reads_is_a_warning_if_it_grows(turns: bool) -> None:
    found = findings(Faded(turns), noise(32)).warnings
    assert [one.partition(" still")[0] for one in found] == ([] if turns else ["state factor"])
    assert turns or "counts on exactly, but what is computed with it" in found[0]


def test_a_model_without_observers_has_no_range() -> None:
    prepared = prepare(export(nn.Linear(4, 4).eval(), noise(1)[0]), NeutronQuantizer(exclude=["*"]))
    watch = CalibrationWatch(prepared, noise(9))
    watch.after_sample()
    assert watch.notes() == () and watch.warnings() == ()


def test_other_tokens_are_other_samples() -> None:
    model = nn.Embedding(40, 8)
    different: Samples = [(torch.tensor([at % 40]),) for at in range(32)]
    assert not [one for one in findings(model, different).notes if "nearly the same" in one]
    assert [one for one in findings(model, different[:1] * 32).notes if "nearly the same" in one]
