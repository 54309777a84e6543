"""CifarNet: three 5x5 convolutions with max pooling and one linear layer, 89,578 weights, trained on CIFAR-10."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.zoo._cifar10 import calibration_inputs, preprocess, test_images
from openneutron.zoo._model import ZooModel
from openneutron.zoo._store import load_weights, packaged_path

__all__ = ["CifarNet", "load", "preprocess"]


class CifarNet(nn.Module):
    """Conv 5x5, ReLU and 2x2 max pooling three times (32, 32, 64 channels), linear to 10 classes, softmax.

    Input is float32 [N, 3, 32, 32] as made by `preprocess`; output is class probabilities [N, 10].

    >>> CifarNet()(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(32, 32, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(32, 64, kernel_size=5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(kernel_size=2, stride=2),
        )
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(64 * 4 * 4, 10)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        probabilities: torch.Tensor = self.softmax(self.classifier(self.flatten(self.features(images))))
        return probabilities


def load() -> ZooModel:
    """Return the trained network (`training/train_cifarnet.py` makes its weights, stored as float32)."""
    model = CifarNet().eval()
    load_weights(model, packaged_path("weights", "cifarnet.npz"))
    calibration = calibration_inputs()
    return ZooModel(
        name="cifarnet",
        description="CifarNet on CIFAR-10: three 5x5 convolutions with max pooling, one linear layer, softmax; trained",
        model=model,
        example_inputs=calibration[0],
        calibration=calibration,
        trained=True,
        test_set=test_images,
    )
