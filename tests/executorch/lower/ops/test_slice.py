from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "channels": lambda: (lambda x: torch.relu(x[:, 1:3]), (torch.randn(1, 4, 4, 5),)),
    "step": lambda: (lambda x: torch.relu(x[:, ::2, 1::3]), (torch.randn(2, 5, 7),)),
    "select": lambda: (lambda x: torch.relu(x[:, -1]), (torch.randn(2, 5, 7),)),
    "chunk": lambda: (lambda x: torch.mul(*x.chunk(2, 1)), (torch.randn(1, 6, 3, 4),)),
    "split": lambda: (lambda x: torch.cat(x.split([1, 3, 2], 1)[::-1], 1), (torch.randn(1, 6, 3, 4),)),
    "behind a convolution": lambda: (Halves(), (torch.randn(1, 3, 5, 5),)),
}


class Halves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.conv(x).unbind(0)[0][None].chunk(2, dim=1)
        return first * torch.sigmoid(second)


def test_slice() -> None:
    check(CASES, layouts=True)
