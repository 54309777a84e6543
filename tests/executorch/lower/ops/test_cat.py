from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "channels": lambda: (lambda x, y: torch.cat([x, y], 1), (torch.randn(1, 3, 4, 5), torch.randn(1, 2, 4, 5) * 3)),
    "width": lambda: (lambda x, y: torch.cat([x, y], -1), (torch.randn(2, 3, 4), torch.randn(2, 3, 2))),
    "three": lambda: (lambda x, y, z: torch.cat([x, y, z]), (torch.randn(1, 4), torch.randn(2, 4), torch.randn(3, 4))),
    "convolutions": lambda: (Fork(), (torch.randn(1, 3, 6, 6),)),
    "fixed with free": lambda: (lambda x: torch.cat([torch.softmax(x, 1), x], 1), (torch.randn(2, 5) * 4,)),
    "stack": lambda: (lambda x, y: torch.stack([x, y], 1), (torch.randn(2, 5), torch.randn(2, 5) * 3)),
    "twice the same": lambda: (lambda x: torch.cat([x, x], 1), (torch.randn(2, 5),)),
}


class Fork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.relu(self.left(x)), self.right(x)], 1)


def test_cat() -> None:
    assert check(CASES, layouts=True).transposes == 0
