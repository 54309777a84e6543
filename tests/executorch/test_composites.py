"""Recurrent layers, attention and stray batch norms, through their decomposition."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import build
from openneutron.executorch.runtime import load_program


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layer = kind(6, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mixer(x, x, x, need_weights=False)[0] + x


class Stray(nn.Module):
    """A batch norm before the convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 1)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.relu(self.norm(x)))


CASES = {
    "gru": lambda: (Recurrent(nn.GRU), torch.randn(1, 4, 6)),
    "lstm": lambda: (Recurrent(nn.LSTM), torch.randn(1, 4, 6)),
    "attention": lambda: (Attention(), torch.randn(1, 7, 8)),
    "batch norm": lambda: (Stray(), torch.randn(1, 3, 5, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_composite_runs_on_the_npu(name: str) -> None:
    torch.manual_seed(0)
    model, x = CASES[name]()
    model.eval()
    built = build(model, (x,), calibration=[(x,)])
    left = [(v.operator, v.code, v.reason) for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert not left, "; ".join(map(str, left))
    (got,) = load_program(built.pte).run(x)
    wanted = model(x)
    assert (got - wanted).abs().max() < 0.08 * wanted.abs().max()
