from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "hardtanh": lambda: (nn.Hardtanh(), (torch.randn(1, 3, 4, 5),)),
    "unit interval": lambda: (lambda x: torch.clamp(x, 0, 1), (torch.randn(2, 7),)),
    "odd bounds": lambda: (lambda x: torch.clamp(x, -0.3, 1.7), (torch.randn(2, 9),)),
    "lower bound alone": lambda: (lambda x: torch.clamp(x, min=0.5), (torch.randn(2, 9),)),
    "odd bounds behind a convolution": lambda: (
        nn.Sequential(nn.Conv2d(2, 3, 1), nn.Hardtanh(-0.5, 0.25)),
        (torch.randn(1, 2, 4, 4),),
    ),
}


def test_clamp() -> None:
    assert check(CASES).transposes == 0


def test_tensor_bounds_stay_on_cpu() -> None:
    found = reasons(lambda x, y: torch.clamp(torch.relu(x), y), (torch.randn(3), torch.randn(3)))
    assert found["no_lowering"]
