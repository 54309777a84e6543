"""Equalisation leaves the float function alone and evens out ranges; it keeps away from what it cannot move."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.quantize.improve.equalize import equalize, find_groups
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm

IMAGES = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def uneven(model: nn.Module) -> nn.Module:
    """Channels whose weights differ by three orders of magnitude."""
    torch.manual_seed(0)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            channels = torch.logspace(-2, 1, layer.weight.shape[0])
            layer.weight.data = torch.randn_like(layer.weight) * channels.reshape(-1, *[1] * (layer.weight.dim() - 1))
            if layer.bias is not None:
                layer.bias.data.zero_()  # no channel is dead
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


class _Gated(nn.Module):
    """A residual block with PReLU, padding and an average, whose shortcut is flattened too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 1), nn.Conv2d(6, 6, 3)
        self.act, self.head, self.other = nn.PReLU(6), nn.Linear(6, 4), nn.Linear(384, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.first(x))
        z = y + self.second(nn.functional.pad(y, (1, 1, 1, 1)))
        return self.head(z.mean((2, 3))) + self.other(z.flatten(1))


CHAINS: dict[str, tuple[nn.Module, int]] = {
    "depth-wise": (nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 4, 1)), 2),
    "grouped": (nn.Sequential(nn.Conv2d(3, 8, 1, bias=False), nn.LeakyReLU(), nn.Conv2d(8, 4, 3, groups=2)), 1),
    "norm": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)), 1),
    "transposed": (nn.Sequential(nn.ConvTranspose2d(3, 5, 2), nn.ReLU(), nn.Conv2d(5, 4, 1)), 1),
    "flattened": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)), 1),
    "average": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)), 1),
    "clamped": (nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 4, 1)), 1),
    "clamped, depth-wise": (nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 6, 3, groups=6)), 1),
    "rows": (nn.Sequential(nn.Flatten(), nn.Linear(192, 6), nn.PReLU(), nn.Linear(6, 4)), 1),
    "joined": (_Gated(), 1),
    "sigmoid": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid(), nn.Conv2d(4, 4, 1)), 0),
    "a linear layer across": (nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Linear(8, 4)), 0),
    "shared weights": (_Shared(), 0),
    "an input is joined": (_Residual(), 0),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_float_function_stays(name: str) -> None:
    model, groups = CHAINS[name]
    model = uneven(model)
    module = exported(model)
    with torch.no_grad():
        wanted = model(IMAGES)
        assert equalize(module, [(IMAGES,)]) == groups
        torch.testing.assert_close(module(IMAGES), wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


def ranges(module: Any, operator: str) -> torch.Tensor:
    """The largest magnitude of each channel behind the first such operator."""
    (node,) = [one for one in module.graph.nodes if operator in str(one.target)][:1]
    made = torch.fx.Interpreter(module, garbage_collect_values=False)
    with torch.no_grad():
        made.run(IMAGES)
    value: torch.Tensor = made.env[node]
    return value.abs().amax((0, 2, 3))


@pytest.mark.parametrize(
    ("reader", "spread"),
    [(nn.Conv2d(6, 4, 1), 30.0), (nn.Conv2d(6, 6, 3, groups=6), 1.2)],
    ids=["half", "depth-wise"],
)
def test_channels_come_closer_and_the_callers_weights_stay(reader: nn.Module, spread: float) -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), reader))
    before = [one.clone() for one in model.parameters()]
    module = exported(model)
    far = ranges(module, "relu")
    assert float(far.max() / far.min()) > 100
    with torch.no_grad():
        equalize(module, [(IMAGES,)])
        near = ranges(module, "relu")
    assert float(near.max() / near.min()) < spread
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_channels_that_reach_the_end_of_a_clamp_keep_their_scale() -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU6(), nn.Conv2d(6, 6, 3, groups=6)))
    module = exported(model)
    before = ranges(module, "hardtanh")
    with torch.no_grad():
        equalize(module, [(IMAGES,)])
    assert float(before.min()) < 1 and float(before.max()) == 6
    after = ranges(module, "hardtanh")
    assert float(after.max()) == 6  # others leave room for values larger than those measured
    torch.testing.assert_close(after[before < 5.9], torch.full((int((before < 5.9).sum()),), 4.0), rtol=1e-3, atol=0)


def test_a_dead_channel_is_left_alone() -> None:
    model = uneven(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1)))
    model[0].weight.data[1] = 0
    model[0].bias.data[1] = 0
    model[2].weight.data[:, 2] = 0
    module = exported(model)
    assert equalize(module, [(IMAGES,)]) == 1 and not find_groups(torch.fx.symbolic_trace(nn.Identity()))
    with torch.no_grad():
        torch.testing.assert_close(module(IMAGES), model(IMAGES), rtol=1e-4, atol=1e-4)
