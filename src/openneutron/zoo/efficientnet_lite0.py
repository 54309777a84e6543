"""EfficientNet-Lite0 at 224x224 pixels (Google, 2020: EfficientNet-B0 without squeeze-and-excitation), untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained
from openneutron.zoo.mobilenet_v2 import InvertedResidual

# Expansion, output channels, repetitions, first stride and kernel of each stage, as published for B0.
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class EfficientNetLite0(nn.Module):
    """A strided 3x3 convolution, 16 inverted residuals with kernels of 3 and 5, global pooling, 1,000 classes.

    Padding is symmetric; the original pads one pixel less at the top and left of strided layers, for the same sizes.

    >>> EfficientNetLite0().eval()(torch.zeros(1, 3, 224, 224)).shape
    torch.Size([1, 1000])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 32, 3, stride=2, activation=nn.ReLU6)]
        channels = 32
        for expansion, width, repetitions, first_stride, kernel in STAGES:
            for index in range(repetitions):
                stride = first_stride if index == 0 else 1
                layers.append(InvertedResidual(channels, width, stride, expansion, kernel))
                channels = width
        layers.append(conv_norm(channels, 1280, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.pool(self.features(images)))
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("efficientnet_lite0", EfficientNetLite0(), (1, 3, 224, 224), "EfficientNet-Lite0 at 224x224")
