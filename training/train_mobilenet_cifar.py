"""Train the small MobileNetV1 on CIFAR-10 and write the weights that the zoo ships.

The schedule is fixed beforehand and the last epoch is kept: the test set is only looked at once, at the end.

    python training/train_mobilenet_cifar.py --cache build/cifar10 --device cuda      # the committed weights

The accuracy printed is that of the file written, read back. Weights are stored as float32.
"""

from __future__ import annotations

import sys

import command

from openneutron.zoo.mobilenet_cifar import MobileNetCifar

# 50 epochs take a few minutes on a GPU and about three hours on one core.
EPOCHS = 50


if __name__ == "__main__":
    network = MobileNetCifar
    sys.exit(
        command.run("mobilenet_cifar", network=network, twin=network, finish=lambda twin: twin, epochs=EPOCHS)
    )
