"""The zoo's networks have the published sizes: weights, multiply-accumulates, outputs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from openneutron import zoo


@dataclass(frozen=True)
class Size:
    # Weights and normalisation statistics together, as Keras counts them.
    weights: int
    # Convolutions and linear layers, one input.
    macs: int
    output: tuple[int, ...]


# The MLPerf Tiny references also have a bias in every convolution that a normalisation follows, where it is without
# effect: their totals (78,666 for ResNet-8, 24,908 for DS-CNN, 221,794 for visual wake words) are higher by these.
SIZES = {
    "autoencoder": Size(269_992, 264_192, (1, 640)),
    "cifarnet": Size(89_578, 12_298_240, (1, 10)),
    "ds_cnn": Size(24_908 - 9 * 64, 2_656_768, (1, 12)),
    "mobilenet_v2": Size(3_504_872 + 34_112, 300_774_272, (1, 1000)),
    "resnet20": Size(274_042, 40_813_184, (1, 10)),
    "resnet8": Size(78_666 - 240, 12_501_632, (1, 10)),
    "vww_mobilenet_v1": Size(221_794 - 2_736, 7_489_664, (1, 2)),
}


@pytest.fixture(scope="module", params=sorted(SIZES))
def loaded(request: pytest.FixtureRequest) -> zoo.ZooModel:
    return zoo.load(request.param)


def test_size_is_the_published_one(loaded: zoo.ZooModel) -> None:
    macs = 0

    def count(layer: nn.Module, _: object, output: torch.Tensor) -> None:
        nonlocal macs
        macs += output[0].numel() * layer.weight[0].numel()

    layers = [layer for layer in loaded.model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    handles = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        output = loaded.model(*loaded.example_inputs)
    for handle in handles:
        handle.remove()
    state = loaded.model.state_dict()
    weights = sum(value.numel() for key, value in state.items() if not key.endswith("num_batches_tracked"))
    assert Size(weights, macs, tuple(output.shape)) == SIZES[loaded.name]


def test_no_channel_is_dead_or_runaway(loaded: zoo.ZooModel) -> None:
    """Statistics that do not fit the weights would show up as outputs that are constant or enormous."""
    with torch.no_grad():
        outputs = torch.cat([loaded.model(*inputs) for inputs in loaded.calibration[:4]])
    assert torch.isfinite(outputs).all()
    assert outputs.abs().max() < 20
    assert outputs.std(dim=0).max() > 1e-3
