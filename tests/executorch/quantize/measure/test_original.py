"""The model as it was given is run as it is, and left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.errors import UnsupportedError
from openneutron.executorch.quantize.measure.original import run_original


class Counter(nn.Module):
    """Counts its calls, in place and by another tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("again", torch.zeros(1))
        self.norm = nn.BatchNorm1d(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        self.again = self.again + 1
        x.mul_(2)
        return self.norm(x) * 0 + self.calls + self.again


def test_state_is_carried_along_and_put_back() -> None:
    model = Counter().train()
    calls, again, sample = model.calls, model.again, torch.ones(1, 1)
    assert [float(one) for one in run_original(model, [(sample,)] * 3)] == [2.0, 4.0, 6.0]
    assert model.calls is calls and model.again is again and float(calls) == float(again) == 0
    assert model.training and float(sample) == 1
    assert int(model.norm.num_batches_tracked) == 0


def test_an_exported_program_is_run_the_same_way() -> None:
    model = Counter().eval()
    program = torch.export.export(model, (torch.ones(1, 1),))
    for _ in range(2):
        assert [float(one) for one in run_original(program, [(torch.ones(1, 1),)] * 2)] == [2.0, 4.0]


def test_a_sample_that_fails_is_named() -> None:
    with pytest.raises(UnsupportedError, match="sample 1: RuntimeError"):
        run_original(nn.Linear(2, 2), [(torch.ones(1, 2),), (torch.ones(1, 3),)])
