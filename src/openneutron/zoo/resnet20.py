"""ResNet-20 for 32x32 images (He et al., 2015), untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut: identity, or a normalised 1x1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(channels_in, channels_out, 3, stride=stride)
        self.second = conv_norm(channels_out, channels_out, 3, activation=None)
        same = stride == 1 and channels_in == channels_out
        self.shortcut = (
            nn.Identity() if same else conv_norm(channels_in, channels_out, 1, stride=stride, activation=None)
        )
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.relu(self.second(self.first(x)) + self.shortcut(x))
        return result


class ResNet20(nn.Module):
    """A 3x3 convolution, three stages of three residual blocks (16, 32, 64 channels), global pooling, linear.

    >>> ResNet20().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 16, 3)]
        channels = 16
        for width in (16, 32, 64):
            for index in range(3):
                layers.append(Block(channels, width, stride=2 if index == 0 and width != channels else 1))
                channels = width
        self.features = nn.Sequential(*layers, nn.AvgPool2d(8), nn.Flatten())
        self.classifier = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images))
        return logits


def load() -> ZooModel:
    """Return the network with seeded weights."""
    return make_untrained("resnet20", ResNet20(), (1, 3, 32, 32), "ResNet-20 for CIFAR-10")
