from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "to channels last": lambda: (lambda x: torch.relu(x.permute(0, 2, 3, 1)), (torch.randn(1, 3, 4, 5),)),
    "transpose": lambda: (lambda x: torch.relu(x.transpose(1, 2)), (torch.randn(2, 3, 4),)),
    "between linear layers": lambda: (
        lambda x: torch.relu(x.permute(2, 0, 1)) + torch.relu(x).permute(2, 0, 1),
        (torch.randn(2, 3, 4),),
    ),
    "convolution to tokens": lambda: (Tokens(), (torch.randn(1, 3, 8, 8),)),
}


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4)
        self.mix = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mix(self.patch(x).flatten(2).transpose(1, 2))


def test_permute() -> None:
    check(CASES, layouts=True)
