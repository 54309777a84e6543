from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check


class Pick(nn.Module):
    """Positions that are part of the model."""

    positions: torch.Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.register_buffer("positions", torch.tensor([2, 0, 2]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.index_select(torch.relu(x), self.dim, self.positions)


CASES = {
    "channels": lambda: (Pick(1), (torch.randn(1, 4, 3, 5),)),
    "rows": lambda: (Pick(-2), (torch.randn(2, 4, 5),)),
}


def test_index_select() -> None:
    assert check(CASES, layouts=True).codes.count("GATHER") == 3
