"""Centring leaves the float function alone and takes the means out of what layers alone read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.executorch.quantize.improve.centre import centre
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm

IMAGES = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class _Residual(nn.Module):
    """A stream without activations, its sum and its difference, pooled and flattened."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.first, self.inner = nn.Conv2d(3, 6, 3, padding=1, bias=bias), nn.Conv2d(6, 8, 1)
        self.back, self.second, self.head = nn.Conv2d(8, 6, 1), nn.Conv2d(6, 4, 1, bias=bias), nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = x - self.back(torch.relu(self.inner(x)))
        return self.head(self.second(nn.functional.max_pool2d(x + x, 2)).flatten(1))


class _Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(6, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.third(x + self.second(x))


def exported(model: nn.Module, inputs: torch.Tensor) -> Any:
    module = torch.export.export(model.eval(), (inputs,)).module(check_guards=False)
    fold_batch_norm(module)
    return module


def means(module: Any, inputs: torch.Tensor, operators: str) -> list[float]:
    """The largest mean of a channel of each layer's result that the module computes."""
    found = []

    class Run(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if n.op == "call_function" and operators in str(n.target):
                axis = -1 if "linear" in operators else 1
                found.append(float(value.mean([d for d in range(value.dim()) if d != axis % value.dim()]).abs().max()))
            return value

    Run(module).run(inputs)
    return found


@pytest.mark.parametrize("bias", [True, False])
def test_results_that_layers_alone_read_have_no_mean(bias: bool) -> None:
    torch.manual_seed(0)
    model, image = _Residual(bias), IMAGES[:1] + 3
    module = exported(model, image)
    wanted = module(image)
    assert centre(module, [(image,)]) == 3  # not what a ReLU reads, and not the output
    torch.testing.assert_close(module(image), wanted, rtol=1e-4, atol=1e-4)
    first, inner, back, second = means(module, image, "conv2d")
    assert max(first, back, second) < 1e-4 < inner


def test_tokens_have_their_channels_last() -> None:
    torch.manual_seed(0)
    rows = torch.randn(1, 5, 6) + 2
    module = exported(_Tokens(), rows)
    wanted = module(rows)
    assert centre(module, [(rows,)]) == 2
    torch.testing.assert_close(module(rows), wanted, rtol=1e-4, atol=1e-4)
    first, second, _ = means(module, rows, "linear")
    assert max(first, second) < 1e-5


@pytest.mark.parametrize(
    "behind",
    [
        nn.Sequential(nn.ReLU(), nn.Conv2d(6, 4, 1)),
        nn.Conv2d(6, 4, 3, padding=1),
        nn.ConvTranspose2d(6, 4, 2),
        nn.Sequential(nn.AvgPool2d(3, padding=1), nn.Conv2d(6, 4, 1)),
        nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(6, 4, 3)),
        nn.Softmax(1),
    ],
    ids=["activation", "padding", "transposed", "padded average", "pad", "softmax"],
)
def test_what_a_shift_would_change_stays(behind: nn.Module) -> None:
    module = exported(nn.Sequential(nn.Conv2d(3, 6, 1), behind), IMAGES[:1])
    assert centre(module, [(IMAGES[:1],)]) == 0


def test_steps_with_the_same_weights_stay_equal() -> None:
    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.cell(self.cell(x)))

    rows = torch.randn(1, 4) + 2
    assert centre(exported(Steps(), rows), [(rows,)]) == 0


def test_channels_of_different_means_keep_their_steps() -> None:
    """Means of some tens behind a norm without activation leave channels of deviation 1 a handful of steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1), nn.ReLU(), nn.Conv2d(8, 4, 1))
    model[1].bias.data = torch.linspace(-60, 60, 8)
    images = [(torch.randn(1, 3, 8, 8),) for _ in range(12)]
    figures = [
        on.compile(model.eval(), images[0], calibration=images, quality="plain", fit_ranges=fits).report.output_sqnr
        for fits in (False, True)
    ]
    assert figures[1] > figures[0] + 3
