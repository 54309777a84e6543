"""Train ResNet-8 on CIFAR-10 and write the weights that the zoo ships.

The schedule is fixed beforehand and the last epoch is kept: the test set is only looked at once, at the end.

    python training/train_resnet8.py --cache build/cifar10 --bfloat16      # the committed weights

The accuracy printed is that of the file written, read back. Weights are stored as float32.
"""

from __future__ import annotations

import sys

import command
import torch
from torch import nn

from openneutron.zoo.resnet8 import ResNet8

# 20 epochs take about 14 minutes on one core with bfloat16 instructions.
EPOCHS = 20


class Twin(nn.Module):
    """ResNet-8 without its softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNet8()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model.logits(images)


if __name__ == "__main__":
    sys.exit(command.run("resnet8", network=ResNet8, twin=Twin, finish=lambda twin: twin.model, epochs=EPOCHS))
