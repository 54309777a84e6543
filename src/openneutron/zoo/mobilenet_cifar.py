"""A small MobileNetV1 for 32x32 images, trained on CIFAR-10: depth-wise convolutions, which per-tensor weights hurt."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm, separable
from openneutron.zoo._cifar10 import calibration_inputs, test_images
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import load_weights, packaged

# (output channels, stride) of each block: every halving of the image doubles the channels, as in MobileNetV1.
BLOCKS = ((48, 1), (96, 2), (96, 1), (192, 2), (192, 1), (192, 1), (256, 2), (256, 1))


class MobileNetCifar(nn.Module):
    """A 3x3 convolution, eight separable blocks, global average pooling, linear.

    >>> MobileNetCifar().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 24, 3)]
        channels = 24
        for width, stride in BLOCKS:
            layers.append(separable(channels, width, stride=stride))
            channels = width
        self.features = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten())
        self.classifier = nn.Linear(channels, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images))
        return logits


def load() -> ZooModel:
    """Return the trained network (`training/train_mobilenet_cifar.py` makes its weights, stored as float32)."""
    model = MobileNetCifar().eval()
    load_weights(model, packaged("weights", "mobilenet_cifar.npz"))
    calibration = calibration_inputs()
    return ZooModel(
        name="mobilenet_cifar",
        description="A small MobileNetV1 on CIFAR-10; trained",
        model=model,
        example_inputs=calibration[0],
        calibration=calibration,
        trained=True,
        test_set=test_images,
    )
