from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "alone": lambda: (nn.ReLU(), (torch.randn(1, 3, 4, 5),)),
    "six": lambda: (nn.ReLU6(), (torch.randn(2, 7) * 5,)),
    "in place": lambda: (nn.ReLU(inplace=True), (torch.randn(3, 5),)),
    "after a result with two readers": lambda: (_two_readers, (torch.randn(2, 6),)),
}


def _two_readers(x: torch.Tensor) -> torch.Tensor:
    y = x + x
    return torch.relu(y) + y


def test_relu() -> None:
    assert check(CASES, layouts=True).transposes == 0
