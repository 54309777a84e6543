"""Measure the normalisation statistics of the zoo's untrained networks and write them beside the zoo.

Run it after changing a topology or its seeds:

    python training/calibrate_untrained.py
"""

from __future__ import annotations

import torch
from torch import nn
from weights import WEIGHTS, save_arrays

from openneutron.zoo._untrained import initialise, seeded_inputs, statistics
from openneutron.zoo.autoencoder import INPUTS, Autoencoder
from openneutron.zoo.detector import Detector
from openneutron.zoo.ds_cnn import DsCnn
from openneutron.zoo.efficientnet_lite0 import EfficientNetLite0
from openneutron.zoo.mobilenet_v2 import MobileNetV2
from openneutron.zoo.resnet18 import ResNet18
from openneutron.zoo.resnet20 import ResNet20
from openneutron.zoo.tcn import BANDS, FRAMES, Tcn
from openneutron.zoo.unet import UNet
from openneutron.zoo.vww_mobilenet_v1 import VwwMobileNetV1

NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "autoencoder": (Autoencoder, (1, INPUTS)),
    "detector": (Detector, (1, 3, 160, 160)),
    "ds_cnn": (DsCnn, (1, 1, 49, 10)),
    "efficientnet_lite0": (EfficientNetLite0, (1, 3, 224, 224)),
    "mobilenet_v2": (MobileNetV2, (1, 3, 224, 224)),
    "resnet18": (ResNet18, (1, 3, 32, 32)),
    "resnet20": (ResNet20, (1, 3, 32, 32)),
    "tcn": (Tcn, (1, BANDS, FRAMES)),
    "unet": (UNet, (1, 3, 128, 128)),
    "vww_mobilenet_v1": (VwwMobileNetV1, (1, 3, 96, 96)),
}
# Statistics over so many inputs leave each channel near zero mean and unit variance on inputs not seen here.
COUNT = 32


def measure(model: nn.Module, name: str, shape: tuple[int, ...]) -> None:
    """Set the running statistics of ``model`` to those of one large batch."""
    initialise(model, name)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            # The batch's own statistics, not a moving average that starts from zero and one.
            layer.momentum = None
    with torch.no_grad():
        model.train()(torch.cat(seeded_inputs(name, shape, COUNT, purpose="statistics")))


def main() -> None:
    torch.set_num_threads(1)
    for name, (network, shape) in NETWORKS.items():
        model = network()
        measure(model, name, shape)
        path = WEIGHTS / f"{name}_statistics.npz"
        save_arrays(path, {key: value.numpy() for key, value in statistics(model).items()})
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
