"""Equalisation leaves the float function alone and evens out ranges; it keeps away from what it cannot move."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.quantize.improve.equalize_weights import equalize_weights, find_pairs
from openneutron.executorch.quantize.passes._layers import layer_of, weight_of
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm

IMAGES = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def uneven(model: nn.Module) -> nn.Module:
    """Channels whose weights differ by three orders of magnitude."""
    torch.manual_seed(0)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            channels = torch.logspace(-2, 1, layer.weight.shape[0])
            layer.weight.data = torch.randn_like(layer.weight) * channels.reshape(-1, *[1] * (layer.weight.dim() - 1))
    return model.eval()


def exported(model: nn.Module, inputs: torch.Tensor = IMAGES) -> Any:
    module = torch.export.export(model, (inputs,)).module(check_guards=False)
    fold_batch_norm(module)
    return module


class _Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.same(self.same(x))


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        return y + self.second(y)


CHAINS: dict[str, tuple[nn.Module, int]] = {
    "depth-wise": (nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 4, 1)), 2),
    "grouped": (nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.LeakyReLU(), nn.Conv2d(8, 4, 3, groups=2)), 1),
    "norm": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)), 1),
    "transposed": (nn.Sequential(nn.ConvTranspose2d(3, 5, 2), nn.ReLU(), nn.Conv2d(5, 4, 1)), 1),
    "flattened": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)), 1),
    "average": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)), 1),
    "sigmoid": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid(), nn.Conv2d(4, 4, 1)), 0),
    "shared weights": (_Shared(), 0),
    "read twice": (_Residual(), 0),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_float_function_stays(name: str) -> None:
    model, pairs = CHAINS[name]
    model = uneven(model)
    module = exported(model)
    with torch.no_grad():
        wanted = model(IMAGES)
        assert equalize_weights(module) == pairs
        torch.testing.assert_close(module(IMAGES), wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


def test_ranges_on_both_sides_become_equal_and_the_callers_weights_stay() -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), nn.Conv2d(6, 4, 1)))
    before = [one.clone() for one in model.parameters()]
    module = exported(model)
    equalize_weights(module)
    first, second = (layer for node in module.graph.nodes if (layer := layer_of(node)) is not None)
    written = weight_of(module, first).abs().amax((1, 2, 3))
    torch.testing.assert_close(written, weight_of(module, second).abs().amax((0, 2, 3)), rtol=1e-3, atol=0)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_clamp_moves_to_the_largest_end_of_its_channels() -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 4, 1)))
    small = IMAGES / 100  # nothing reaches 6, so the function is the same
    module = exported(model, small)
    with torch.no_grad():
        wanted = model(small)
        assert equalize_weights(module) == 1
        torch.testing.assert_close(module(small), wanted, rtol=1e-4, atol=1e-5)
    (clamp,) = [node for node in module.graph.nodes if "clamp" in str(node.target)]
    assert clamp.args[1] == 0 and clamp.args[2] > 6


def test_a_dead_channel_is_left_alone() -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1)))
    model[0].weight.data[1] = 0
    model[2].weight.data[:, 2] = 0
    module = exported(model)
    assert equalize_weights(module) == 1 and not find_pairs(torch.fx.symbolic_trace(nn.Identity()))
    with torch.no_grad():
        torch.testing.assert_close(module(IMAGES), model(IMAGES), rtol=1e-4, atol=1e-4)
