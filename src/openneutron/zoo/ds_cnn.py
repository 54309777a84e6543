"""DS-CNN: the keyword spotter of MLPerf Tiny, untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm, separable
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained


class DsCnn(nn.Module):
    """A 10x4 convolution over 49 frames of 10 coefficients, four separable blocks of 64 channels, 12 keywords.

    Padding is symmetric (5 rows, 1 column); the reference pads one row less at the top, for the same sizes.

    >>> DsCnn().eval()(torch.zeros(1, 1, 49, 10)).shape
    torch.Size([1, 12])
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            conv_norm(1, 64, (10, 4), stride=2, padding=(5, 1)),
            *(separable(64, 64) for _ in range(4)),
            nn.AvgPool2d((25, 5)),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(64, 12)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, coefficients: torch.Tensor) -> torch.Tensor:
        probabilities: torch.Tensor = self.softmax(self.classifier(self.features(coefficients)))
        return probabilities


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("ds_cnn", DsCnn(), (1, 1, 49, 10), "DS-CNN of MLPerf Tiny, keyword spotting")
