"""An LSTM keyword spotter, the small basic one of "Hello Edge" (Zhang et al., 2017); untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

FRAMES, COEFFICIENTS = 25, 10  # one second in steps of 40 ms
CELLS = 118
KEYWORDS = 12


class LstmKws(nn.Module):
    """One LSTM layer of 118 cells over 25 frames of 10 coefficients; its last state tells the keyword.

    >>> LstmKws().eval()(torch.zeros(1, 25, 10)).shape
    torch.Size([1, 12])
    """

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(COEFFICIENTS, CELLS, batch_first=True)
        self.classifier = nn.Linear(CELLS, KEYWORDS)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        _, (state, _) = self.lstm(frames)
        logits: torch.Tensor = self.classifier(state[-1])
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("lstm_kws", LstmKws(), (1, FRAMES, COEFFICIENTS), "LSTM keyword spotter, 118 cells, 25 steps")
