from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "hardtanh": lambda: (nn.Hardtanh(), (torch.randn(1, 3, 4, 5),)),
    "unit interval": lambda: (lambda x: torch.clamp(x, 0, 1), (torch.randn(2, 7),)),
    "odd bounds": lambda: (lambda x: torch.clamp(x, -0.3, 1.7), (torch.randn(2, 9),)),
    "lower bound alone": lambda: (lambda x: torch.clamp(x, min=0.5), (torch.randn(2, 9),)),
    "odd bounds behind a convolution": lambda: (
        nn.Sequential(nn.Conv2d(2, 3, 1), nn.Hardtanh(-0.5, 0.25)),
        (torch.randn(1, 2, 4, 4),),
    ),
    "bounds that are computed": lambda: (
        lambda x, y: torch.clamp(torch.relu(x), torch.tanh(y)),
        (torch.randn(2, 9), torch.randn(2, 9)),
    ),
}


def test_clamp() -> None:
    assert check(CASES).transposes == 0
