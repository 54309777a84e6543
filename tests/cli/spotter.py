"""A module with a state, as a factory that a command line can name."""

from __future__ import annotations

import torch
from torch import nn


class Spotter(nn.Module):
    """Adds up frames and answers with the sum so far."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("heard", torch.zeros(1, 3))

    def forward(self, frame: torch.Tensor) -> torch.Tensor:
        heard = self.heard + frame
        self.heard.copy_(heard)
        return heard


def spotter() -> tuple[nn.Module, tuple[torch.Tensor]]:
    return Spotter(), (torch.tensor([[-4.0, 0.0, 4.0]]),)  # as far as sums of four frames go
