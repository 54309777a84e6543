"""A GRU keyword spotter, the small one of "Hello Edge" (Zhang et al., 2017); untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

FRAMES, COEFFICIENTS = 25, 10  # one second in steps of 40 ms
CELLS = 154
KEYWORDS = 12


class GruKws(nn.Module):
    """One GRU layer of 154 cells over 25 frames of 10 coefficients; its last state tells the keyword.

    >>> GruKws().eval()(torch.zeros(1, 25, 10)).shape
    torch.Size([1, 12])
    """

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(COEFFICIENTS, CELLS, batch_first=True)
        self.classifier = nn.Linear(CELLS, KEYWORDS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(frames)
        logits: torch.Tensor = self.classifier(states[:, -1])
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("gru_kws", GruKws(), (1, FRAMES, COEFFICIENTS), "GRU keyword spotter, 154 cells, 25 steps")
