"""ResNet-8: the image classifier of MLPerf Tiny, trained on CIFAR-10."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._blocks import conv_norm
from openneutron.zoo._cifar10 import calibration_inputs, test_images
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import load_weights, packaged_path


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut: identity, or a plain 1x1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(channels_in, channels_out, 3, stride=stride)
        self.second = conv_norm(channels_out, channels_out, 3, activation=None)
        same = stride == 1 and channels_in == channels_out
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels_in, channels_out, 1, stride=stride)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.relu(self.second(self.first(x)) + self.shortcut(x))
        return result


class ResNet8(nn.Module):
    """A 3x3 convolution, three residual blocks (16, 32, 64 channels), global average pooling, linear, softmax.

    >>> ResNet8().eval()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            conv_norm(3, 16, 3),
            Block(16, 16, stride=1),
            Block(16, 32, stride=2),
            Block(32, 64, stride=2),
            nn.AvgPool2d(8),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(64, 10)
        self.softmax = nn.Softmax(dim=1)

    def logits(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits, which training needs."""
        result: torch.Tensor = self.classifier(self.features(images))
        return result

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        probabilities: torch.Tensor = self.softmax(self.logits(images))
        return probabilities


def load() -> ZooModel:
    """Return the trained network (`training/train_resnet8.py` makes its weights, stored as float32)."""
    model = ResNet8().eval()
    load_weights(model, packaged_path("weights", "resnet8.npz"))
    calibration = calibration_inputs()
    return ZooModel(
        name="resnet8",
        description="ResNet-8 of MLPerf Tiny on CIFAR-10; trained",
        model=model,
        example_inputs=calibration[0],
        calibration=calibration,
        trained=True,
        test_set=test_images,
    )
