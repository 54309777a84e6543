from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "same shape": lambda: (torch.add, (torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 5) * 3)),
    "broadcast channels": lambda: (torch.add, (torch.randn(2, 3, 4, 5), torch.randn(3, 1, 1))),
    "number": lambda: (lambda x: x + 1.5, (torch.randn(2, 7),)),
    "residual with relu": lambda: (Residual(), (torch.randn(1, 4, 6, 6),)),
    "parameter": lambda: (Shift(), (torch.randn(1, 3, 4, 4),)),
    "itself": lambda: (lambda x: x + x, (torch.randn(3, 4),)),
}


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x) + x)


class Shift(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.randn(1, 3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


def test_add() -> None:
    assert check(CASES, layouts=True).transposes == 0


def test_factor_stays_on_cpu() -> None:
    found = reasons(lambda x, y: torch.add(x, y, alpha=2), (torch.randn(3), torch.randn(3)))
    assert "alpha is 2" in found["unscaled"]
