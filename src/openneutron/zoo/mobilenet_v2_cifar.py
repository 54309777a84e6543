"""A small MobileNetV2 for 32x32 images, trained on CIFAR-10 with Adam and no weight decay.

Trained that way, the channels of its depth-wise convolutions differ in range by orders of magnitude once batch norms are
folded: weights with one scale per tensor lose most of them. It is here to show that, and what training against it gives.
"""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._cifar10 import calibration_inputs, test_images
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import load_weights, packaged_path

# (output channels, stride) of each inverted residual, and how much wider its inside is (6, as in MobileNetV2).
BLOCKS = ((12, 1), (12, 1), (16, 2), (16, 1), (24, 2), (24, 1), (24, 1), (32, 2), (32, 1))
EXPANSION = 6
FIRST, LAST = 16, 128


class Block(nn.Module):
    """Widen with 1x1, filter with depth-wise 3x3, narrow with 1x1; a shortcut where the shape stays."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        inside = channels_in * EXPANSION
        self.expand = conv_norm(channels_in, inside, 1, activation=nn.ReLU6)
        self.depth = conv_norm(inside, inside, 3, stride=stride, groups=inside, activation=nn.ReLU6)
        self.project = conv_norm(inside, channels_out, 1, activation=None)
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.project(self.depth(self.expand(x)))
        return x + y if self.shortcut else y


class MobileNetV2Cifar(nn.Module):
    """A 3x3 convolution, nine inverted residuals, a 1x1 convolution, global average pooling, linear.

    >>> MobileNetV2Cifar().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, FIRST, 3, activation=nn.ReLU6)]
        channels = FIRST
        for width, stride in BLOCKS:
            layers.append(Block(channels, width, stride))
            channels = width
        layers.append(conv_norm(channels, LAST, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten())
        self.classifier = nn.Linear(LAST, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images))
        return logits


def load() -> ZooModel:
    """Return the trained network (`training/train_mobilenet_v2_cifar.py` makes its weights, stored as float32)."""
    model = MobileNetV2Cifar().eval()
    load_weights(model, packaged_path("weights", "mobilenet_v2_cifar.npz"))
    calibration = calibration_inputs()
    return ZooModel(
        name="mobilenet_v2_cifar",
        description="A small MobileNetV2 on CIFAR-10, hard to quantize per tensor; trained",
        model=model,
        example_inputs=calibration[0],
        calibration=calibration,
        trained=True,
        test_set=test_images,
    )
