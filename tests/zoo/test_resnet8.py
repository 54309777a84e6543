"""ResNet-8: the accuracy of the weights that are shipped."""

from __future__ import annotations

import torch

from openneutron import zoo


def test_float_accuracy_is_at_least_80_percent_on_the_committed_images() -> None:
    loaded = zoo.load("resnet8")
    images = loaded.test_images()
    with torch.no_grad():
        answers = loaded.model(images.inputs).argmax(dim=1).numpy()
    assert loaded.trained
    assert (answers == images.labels).mean() >= 0.80
