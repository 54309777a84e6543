"""MobileNetV2 at width 1.0 and 224x224 pixels (Sandler et al., 2018), untrained."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._model import ZooModel
from openneutron.zoo._untrained import make_untrained

# Expansion, output channels, repetitions and first stride of each stage: table 2 of the paper.
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(nn.Module):
    """Widen by a 1x1 convolution, filter depthwise, narrow without activation; add the input where shapes agree."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, expansion: int, kernel: int = 3) -> None:
        super().__init__()
        width = channels_in * expansion
        layers: list[nn.Module] = [] if expansion == 1 else [conv_norm(channels_in, width, 1, activation=nn.ReLU6)]
        self.layers = nn.Sequential(
            *layers,
            conv_norm(width, width, kernel, stride=stride, groups=width, activation=nn.ReLU6),
            conv_norm(width, channels_out, 1, activation=None),
        )
        self.residual = stride == 1 and channels_in == channels_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(x)
        return x + result if self.residual else result


class MobileNetV2(nn.Module):
    """A strided 3x3 convolution, 17 inverted residuals, a 1x1 convolution, global pooling, linear to 1,000 classes.

    >>> MobileNetV2().eval()(torch.zeros(1, 3, 224, 224)).shape
    torch.Size([1, 1000])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 32, 3, stride=2, activation=nn.ReLU6)]
        channels = 32
        for expansion, width, repetitions, first_stride in STAGES:
            for index in range(repetitions):
                layers.append(InvertedResidual(channels, width, first_stride if index == 0 else 1, expansion))
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
    return make_untrained("mobilenet_v2", MobileNetV2(), (1, 3, 224, 224), "MobileNetV2 1.0 at 224x224")
