"""Buffers that a graph changes: found, copied, put back, and apart from the caller's."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.quantize.states import restore, separate_buffers, states_of


class Total(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.ones(2))
        self.register_buffer("step", torch.full((2,), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x * self.step)
        return self.total + 0


def test_states_are_parted_from_the_model_and_put_back() -> None:
    model = nn.Sequential(Total())
    module = torch.export.export(model, (torch.zeros(2),)).module()
    separate_buffers(module)
    states = states_of(module)
    assert list(states) == ["0.total"]
    first = module(torch.ones(2))
    assert first.tolist() == [4, 4] and module(torch.ones(2)).tolist() == [7, 7]
    assert model[0].total.tolist() == [1, 1]
    restore(module, states)
    assert module(torch.ones(2)).tolist() == [4, 4]
