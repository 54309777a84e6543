"""MobileNetV1 at width 0.25 and 96x96 pixels: the visual wake words network of MLPerf Tiny, untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm, separable
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

# Output channels at width 0.25 and stride of each of the 13 separable blocks of MobileNetV1.
BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))


class VwwMobileNetV1(nn.Module):
    """A strided 3x3 convolution, 13 separable blocks, global average pooling, linear to person / no person, softmax.

    >>> VwwMobileNetV1().eval()(torch.zeros(1, 3, 96, 96)).shape
    torch.Size([1, 2])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 8, 3, stride=2)]
        channels = 8
        for width, stride in BLOCKS:
            layers.append(separable(channels, width, stride=stride))
            channels = width
        self.features = nn.Sequential(*layers, nn.AvgPool2d(3), nn.Flatten())
        self.classifier = nn.Linear(channels, 2)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        probabilities: torch.Tensor = self.softmax(self.classifier(self.features(images)))
        return probabilities


def load() -> ZooModel:
    """Return the network with seeded weights."""
    what = "MobileNetV1 0.25 at 96x96 of MLPerf Tiny, visual wake words"
    return make_untrained("vww_mobilenet_v1", VwwMobileNetV1(), (1, 3, 96, 96), what)
