"""ResNet-18 for 32x32 images (He et al., 2015): a 3x3 stem without pooling, as is usual for CIFAR-10; untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained
from openneutron.zoo.resnet20 import Block


class ResNet18(nn.Module):
    """A 3x3 convolution, four stages of two residual blocks (64 to 512 channels), global pooling, linear.

    >>> ResNet18().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 64, 3)]
        channels = 64
        for width in (64, 128, 256, 512):
            for index in range(2):
                layers.append(Block(channels, width, stride=2 if index == 0 and width != channels else 1))
                channels = width
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(512, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images))
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("resnet18", ResNet18(), (1, 3, 32, 32), "ResNet-18 for CIFAR-10")
