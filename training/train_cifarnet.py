"""Train CifarNet on CIFAR-10 and write the weights that the zoo ships.

During training a batch normalisation follows each convolution; it is folded into the convolution before saving, so the
saved network is plain CifarNet. Max pooling runs before ReLU during training: the result is the same, for a quarter of
the work. The schedule is fixed beforehand and the last epoch is kept: the test set is only looked at once, at the end.

    python training/train_cifarnet.py --cache build/cifar10 --bfloat16      # the committed weights

The accuracy printed is that of the file written, read back. Weights are stored as float32.
"""

from __future__ import annotations

import sys

import command
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from openneutron.zoo.cifarnet import CifarNet

# 30 epochs take about 14 minutes on one core with bfloat16 instructions, and reach 85 %.
EPOCHS = 30


class Twin(nn.Module):
    """CifarNet as it is trained: batch normalisation inside, logits out."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for channels_in, channels_out in ((3, 32), (32, 32), (32, 64)):
            layers += [
                nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2, bias=False),
                nn.BatchNorm2d(channels_out),
                nn.MaxPool2d(kernel_size=2, stride=2),
                nn.ReLU(),
            ]
        self.features = nn.Sequential(*layers, nn.Flatten())
        self.classifier = nn.Linear(64 * 4 * 4, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images))
        return logits


def fold(twin: Twin) -> CifarNet:
    """Return the CifarNet that computes the softmax of what the trained ``twin`` computes."""
    model = CifarNet().eval()
    layers = twin.eval().features
    for source, destination in ((0, 0), (4, 3), (8, 6)):
        model.features[destination] = fuse_conv_bn_eval(layers[source], layers[source + 1])
    model.classifier = twin.classifier
    return model


if __name__ == "__main__":
    sys.exit(command.run("cifarnet", network=CifarNet, twin=Twin, finish=fold, epochs=EPOCHS))
