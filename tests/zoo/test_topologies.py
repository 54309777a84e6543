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
    # Convolutions, linear and recurrent layers, one input; products of activations (attention) are not counted.
    macs: int
    output: tuple[int, ...] | tuple[tuple[int, ...], ...]


# The MLPerf Tiny references also have a bias in every convolution that a normalisation follows, where it is without
# effect: their totals (78,666 for ResNet-8, 24,908 for DS-CNN, 221,794 for visual wake words) are higher by these.
SIZES = {
    "autoencoder": Size(269_992, 264_192, (1, 640)),
    "cifarnet": Size(89_578, 12_298_240, (1, 10)),
    "detector": Size(300_656, 19_491_200, ((1, 300, 4), (1, 300, 20), (1, 75, 4), (1, 75, 20))),
    "ds_cnn": Size(24_908 - 9 * 64, 2_656_768, (1, 12)),
    "efficientnet_lite0": Size(4_652_008 + 42_016, 385_187_552, (1, 1000)),
    # 25 steps of 3 * 154 * (10 + 154), and 4 * 118 * (10 + 118).
    "gru_kws": Size(78_552, 25 * 75_768 + 154 * 12, (1, 12)),
    "lstm_kws": Size(62_788, 25 * 60_416 + 118 * 12, (1, 12)),
    "mobilenet_v2": Size(3_504_872 + 34_112, 300_774_272, (1, 1000)),
    "resnet18": Size(11_173_962 + 9_600, 555_422_720, (1, 10)),
    "resnet20": Size(274_042, 40_813_184, (1, 10)),
    "resnet8": Size(78_666 - 240, 12_501_632, (1, 10)),
    "tcn": Size(99_148, 9_241_344, (1, 12)),
    "unet": Size(484_196, 145_162_240, (1, 4, 64, 64)),
    "vit_block": Size(444_864, 64 * 192 * (4 * 192 + 2 * 768), (1, 64, 192)),
    "vww_mobilenet_v1": Size(221_794 - 2_736, 7_489_664, (1, 2)),
}


@pytest.fixture(scope="module", params=sorted(SIZES))
def loaded(request: pytest.FixtureRequest) -> zoo.ZooModel:
    return zoo.load(request.param)


LAYERS = nn.Conv1d | nn.Conv2d | nn.ConvTranspose2d | nn.Linear | nn.RNNBase


def macs_of(layer: nn.Module, given: torch.Tensor, output: torch.Tensor) -> int:
    """Multiply-accumulates of one call."""
    if isinstance(layer, nn.RNNBase):
        return given.shape[1] * sum(p.numel() for p in layer.parameters() if p.dim() > 1)
    # A transposed convolution spreads each input, the others gather for each output.
    ends = given if isinstance(layer, nn.ConvTranspose2d) else output
    return ends[0].numel() * layer.weight[0].numel()


def leaves(value: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return value if isinstance(value, tuple) else (value,)


def test_size_is_the_published_one(loaded: zoo.ZooModel) -> None:
    macs = 0

    def count(layer: nn.Module, given: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal macs
        macs += macs_of(layer, given[0], output)

    layers = [layer for layer in loaded.model.modules() if isinstance(layer, LAYERS)]
    handles = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        outputs = leaves(loaded.model(*loaded.example_inputs))
    for handle in handles:
        handle.remove()
    state = loaded.model.state_dict()
    weights = sum(value.numel() for key, value in state.items() if not key.endswith("num_batches_tracked"))
    shapes = tuple(tuple(output.shape) for output in outputs)
    assert Size(weights, macs, shapes if len(shapes) > 1 else shapes[0]) == SIZES[loaded.name]


def test_no_channel_is_dead_or_runaway(loaded: zoo.ZooModel) -> None:
    """Statistics that do not fit the weights would show up as outputs that are constant or enormous."""
    with torch.no_grad():
        samples = [leaves(loaded.model(*inputs)) for inputs in loaded.calibration[:4]]
    for outputs in map(torch.cat, zip(*samples, strict=True)):
        assert torch.isfinite(outputs).all()
        assert outputs.abs().max() < 20
        assert outputs.std(dim=0).max() > 1e-3
