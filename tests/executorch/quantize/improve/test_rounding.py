"""Rounding for a layer's result: never worse than to nearest, as good as trying everything on a small layer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.quantize.improve.rounding import gram, inputs_of_a_group, round_weights
from openneutron.executorch.quantize.passes._layers import Layer, layer_of


def layer(model: nn.Module, x: torch.Tensor) -> Layer:
    graph: Any = torch.export.export(model, (x,)).module(check_guards=False)
    (found,) = [one for node in graph.graph.nodes if (one := layer_of(node)) is not None]
    return found


LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(12, 4), (1, 6, 12)),
    "convolution": (lambda: nn.Conv2d(3, 5, 3, padding=1, stride=2), (1, 3, 9, 9)),
    "depth-wise": (lambda: nn.Conv2d(6, 6, (1, 3), groups=6, dilation=(1, 2)), (1, 6, 4, 9)),
    "grouped 1d": (lambda: nn.Conv1d(4, 6, 3, groups=2, padding=2), (1, 4, 12)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_the_result_is_nearer_than_with_nearest_weights(name: str) -> None:
    torch.manual_seed(0)
    make, shape = LAYERS[name]
    model = make()
    read = [torch.randn(shape).cumsum(-1) for _ in range(8)]  # neighbours are alike, as in images
    found, weight = layer(model, read[0]), model.weight.detach()
    scales = torch.full((weight.shape[0],), float(weight.abs().max()) / 7)  # three bits: rounding matters
    steps = round_weights(found, weight, scales, gram(found, weight, read))
    step = scales[0]
    exact = weight / step
    assert steps.dtype == torch.int8 and bool(((steps - exact).abs() < 1 + 1e-5).all())

    def noise(new: torch.Tensor) -> float:
        with torch.no_grad():
            other = nn.Module.__new__(type(model))
            other.__dict__.update(model.__dict__)
            other._parameters = {**model._parameters, "weight": nn.Parameter(new)}
            return sum(float((other(x) - model(x)).square().sum()) for x in read)

    assert noise(steps * step) < 0.8 * noise(exact.round() * step)


def test_it_finds_the_best_of_all_choices_of_a_small_layer() -> None:
    torch.manual_seed(1)
    model = nn.Linear(6, 1, bias=False)
    read = [torch.rand(1, 6) for _ in range(50)]
    found, weight = layer(model, read[0]), model.weight.detach()
    moments = gram(found, weight, read)
    scales = torch.tensor([0.1])
    flat = (weight / 0.1).double().reshape(-1)

    def loss(steps: torch.Tensor) -> float:
        error = steps.double() - flat
        return float(error @ moments[0].double() @ error)

    best = min(loss(flat.floor() + torch.tensor(up)) for up in itertools.product((0.0, 1.0), repeat=6))
    assert loss(round_weights(found, weight, scales, moments).reshape(-1)) <= 1.5 * best
    assert inputs_of_a_group(found, weight) == 6
