"""Layers of volumes run on the NPU as layers of images: exact, rounded once, and without a copy where none is needed."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import openneutron as on
from openneutron.executorch.quantize.passes.decompose._slices import Run, average_windows
from openneutron.executorch.quantize.train.training import Training
from tests.executorch.harness import Case, check


def volume(*shape: int) -> tuple[torch.Tensor]:
    return (torch.randn(*shape),)


def normalized(*layers: nn.Module) -> nn.Module:
    """Layers with batch norms that do something."""
    for layer in layers:
        if isinstance(layer, nn.BatchNorm3d):
            assert layer.running_mean is not None and layer.running_var is not None
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    return nn.Sequential(*layers)


CONVOLUTIONS: dict[str, Case] = {
    "with norm and activation": lambda: (
        normalized(nn.Conv3d(3, 8, 3, padding=1, bias=False), nn.BatchNorm3d(8), nn.ReLU()),
        volume(1, 3, 5, 6, 7),
    ),
    "strides and dilation": lambda: (
        nn.Conv3d(2, 4, (3, 2, 3), stride=(2, 1, 2), padding=(2, 1, 0), dilation=(2, 1, 1)),
        volume(2, 2, 7, 6, 7),
    ),
    "as large, even kernel": lambda: (nn.Conv3d(2, 4, (2, 4, 3), padding="same"), volume(1, 2, 4, 6, 7)),
    "groups": lambda: (nn.Conv3d(4, 6, 3, groups=2, padding=1, stride=(1, 2, 1)), volume(1, 4, 4, 6, 5)),
    "depth-wise": lambda: (nn.Sequential(nn.Conv3d(4, 4, 3, groups=4), nn.ReLU6()), volume(1, 4, 4, 6, 5)),
    "depth-wise, dilated": lambda: (nn.Conv3d(4, 4, 3, groups=4, padding=2, dilation=2), volume(1, 4, 5, 6, 5)),
    "along the depth": lambda: (
        nn.Sequential(nn.Conv3d(4, 6, (3, 1, 1), padding=(1, 0, 0), stride=(2, 1, 1)), nn.Hardswish()),
        volume(1, 4, 6, 6, 5),
    ),
    "within slices": lambda: (
        nn.Conv3d(4, 6, (1, 3, 3), padding=(0, 1, 1), stride=(2, 2, 1)),
        volume(2, 4, 5, 6, 5),
    ),
    "one point": lambda: (nn.Conv3d(4, 6, 1), volume(2, 4, 5, 6, 5)),
    "without a batch": lambda: (nn.Conv3d(4, 6, (2, 3, 3)), volume(4, 5, 6, 5)),
    "norm in front": lambda: (
        normalized(nn.BatchNorm3d(3), nn.ReLU(), nn.Conv3d(3, 2, 3)),
        volume(2, 3, 4, 5, 5),
    ),
}
TRANSPOSED: dict[str, Case] = {
    "doubles": lambda: (nn.Sequential(nn.ConvTranspose3d(4, 6, 2, stride=2), nn.ReLU()), volume(1, 4, 3, 4, 5)),
    "overlapping": lambda: (
        nn.ConvTranspose3d(4, 6, (4, 3, 3), stride=(2, 2, 1), padding=(1, 1, 1), output_padding=(1, 1, 0)),
        volume(2, 4, 3, 4, 5),
    ),
    "cut": lambda: (nn.ConvTranspose3d(2, 3, 3, stride=3, padding=(1, 0, 0)), volume(1, 2, 3, 4, 5)),
    "dilated": lambda: (nn.ConvTranspose3d(2, 3, 3, dilation=(2, 1, 1)), volume(1, 2, 3, 4, 5)),
    "groups": lambda: (
        nn.ConvTranspose3d(4, 6, (4, 2, 2), stride=2, padding=(1, 0, 0), groups=2),
        volume(1, 4, 3, 4, 5),
    ),
    "slices of nothing": lambda: (nn.ConvTranspose3d(2, 3, (1, 2, 2), stride=2), volume(1, 2, 3, 4, 5)),
}
POOLS: dict[str, Case] = {
    "maximum": lambda: (
        lambda x: functional.max_pool3d(x, (3, 3, 2), stride=2, padding=(1, 1, 0), ceil_mode=True),
        volume(1, 3, 4, 6, 7),
    ),
    "maximum along the depth": lambda: (lambda x: functional.max_pool3d(x, (2, 1, 1)), volume(1, 3, 4, 6, 7)),
    "average": lambda: (lambda x: functional.avg_pool3d(x, 2), volume(1, 3, 4, 6, 7)),
    "average, counted": lambda: (
        lambda x: functional.avg_pool3d(x, 3, stride=2, padding=1),
        volume(1, 3, 5, 6, 7),
    ),
    "average, not counted": lambda: (
        lambda x: functional.avg_pool3d(x, 3, stride=1, padding=1, count_include_pad=False),
        volume(2, 3, 5, 6, 7),
    ),
    "average, beyond the end": lambda: (
        lambda x: functional.avg_pool3d(x, 2, stride=2, ceil_mode=True),
        volume(2, 3, 5, 5, 7),
    ),
    "adaptive": lambda: (lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 1)), volume(1, 3, 4, 6, 7)),
    "adaptive, all": lambda: (lambda x: functional.adaptive_avg_pool3d(x, 1), volume(1, 3, 4, 6, 7)),
    "adaptive, unequal": lambda: (lambda x: functional.adaptive_avg_pool3d(x, (2, 3, 2)), volume(1, 3, 5, 6, 7)),
    "adaptive maximum": lambda: (lambda x: functional.adaptive_max_pool3d(x, (2, 3, 2)), volume(1, 3, 5, 6, 7)),
    "nearest": lambda: (lambda x: functional.interpolate(x, scale_factor=2), volume(1, 3, 3, 4, 5)),
    "nearest, exact": lambda: (
        lambda x: functional.interpolate(x, scale_factor=2, mode="nearest-exact"),
        volume(1, 3, 3, 4, 5),
    ),
    "nearest, of a size": lambda: (lambda x: functional.interpolate(x, size=(4, 6, 10)), volume(1, 3, 2, 3, 5)),
    "linear": lambda: (
        lambda x: functional.interpolate(x, scale_factor=2, mode="trilinear"),
        volume(1, 3, 3, 4, 5),
    ),
    "linear, corners": lambda: (
        lambda x: functional.interpolate(x, size=(5, 7, 9), mode="trilinear", align_corners=True),
        volume(1, 3, 3, 4, 5),
    ),
}


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(CONVOLUTIONS, id="convolutions"),
        pytest.param({name: POOLS[name] for name in [*POOLS][::5]}, id="pools"),
        pytest.param({**TRANSPOSED, **POOLS}, id="all others", marks=pytest.mark.full),
    ],
)
def test_volumes(cases: dict[str, Case]) -> None:
    codes = check(cases).codes
    if cases is CONVOLUTIONS:  # one layer each: the batch norm in front of a layer is one too
        assert codes.count("CONV_2D") + codes.count("DEPTHWISE_CONV_2D") == len(cases) + 1
        assert "RELU" in codes and "RELU6" not in codes  # only the one in front of a layer is left


def test_a_convolution_along_the_depth_copies_no_slices() -> None:
    case = {"one": lambda: (nn.Conv3d(4, 6, (3, 1, 1)), volume(1, 4, 6, 6, 5))}
    assert not {"CONCATENATION", "SLICE", "PAD"} & {*check(case).codes}


def test_16_bit_activations() -> None:
    cases = {"one": CONVOLUTIONS["groups"], "two": TRANSPOSED["overlapping"], "three": POOLS["average, counted"]}
    check(cases, activations="int16")


@pytest.mark.full
def test_training_with_an_open_batch() -> None:
    """The norm moves in front of the views with its statistics, and the arranged weights are trained."""
    layers = [
        nn.Conv3d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm3d(4),
        nn.ReLU(),
        nn.ConvTranspose3d(4, 2, 2, stride=2),
    ]
    torch.manual_seed(0)
    model = normalized(*layers).eval()
    images = torch.randn(4, 2, 3, 6, 6)
    wanted = model(images).detach()
    seen: list[tuple[int, ...]] = []

    def train(trained: nn.Module, training: Training) -> None:
        seen.extend(tuple(one.shape) for one in trained.parameters())
        optimizer = torch.optim.Adam(trained.parameters(), lr=1e-3)
        for step in range(1, 5):
            loss = ((trained(images) - wanted) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            training.step(loss, step, 4)

    program = on.compile(model, (images[:1],), train=train)
    assert (4, 6, 3, 3) in seen
    (got,) = program.run(images[:1])
    assert float(((got - wanted[:1]) ** 2).mean()) < 0.01 * float((wanted[:1] ** 2).mean())


def test_windows_of_an_average() -> None:
    assert average_windows(5, 5, 3, 1, 1) == [Run(0, 2, 1), Run(0, 3, 3), Run(3, 2, 1)]
    assert average_windows(5, 3, 2, 2, 0) == [Run(0, 2, 2), Run(4, 1, 1)]
