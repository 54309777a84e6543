"""Train the small MobileNetV2 on CIFAR-10, with Adam and no weight decay, and write the weights that the zoo ships.

The schedule is fixed beforehand and the last epoch is kept: the test set is only looked at once, at the end.

    python training/train_mobilenet_v2_cifar.py --cache build/cifar10 --device cuda      # as the committed weights

The accuracy printed is that of the file written, read back. Weights are stored as float32.
"""

from __future__ import annotations

import sys

import command

from openneutron.zoo.mobilenet_v2_cifar import MobileNetV2Cifar

# 16 epochs take two minutes on a GPU and about an hour on one core.
EPOCHS = 16


if __name__ == "__main__":
    sys.exit(
        command.run(
            "mobilenet_v2_cifar",
            network=MobileNetV2Cifar,
            twin=MobileNetV2Cifar,
            finish=lambda twin: twin,
            epochs=EPOCHS,
            optimizer="adam",
            peak_rate=4e-3,
            weight_decay=0.0,
        )
    )
