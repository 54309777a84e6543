"""The anomaly detector of MLPerf Tiny: a fully connected autoencoder, untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

# Five frames of 128 mel bands in and out, a bottleneck of 8 between four layers of 128 on either side.
INPUTS = 640
HIDDEN = (128, 128, 128, 128, 8, 128, 128, 128, 128)


class Autoencoder(nn.Module):
    """Nine hidden linear layers with batch normalisation and ReLU, and a linear output layer.

    >>> Autoencoder().eval()(torch.zeros(1, 640)).shape
    torch.Size([1, 640])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = INPUTS
        for hidden in HIDDEN:
            layers += [nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU()]
            width = hidden
        self.layers = nn.Sequential(*layers, nn.Linear(width, INPUTS))

    def forward(self, bands: torch.Tensor) -> torch.Tensor:
        restored: torch.Tensor = self.layers(bands)
        return restored


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("autoencoder", Autoencoder(), (1, INPUTS), "Autoencoder of MLPerf Tiny, anomaly detection")
