"""Ranges and weights of one quantized module in another of the same operators."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.engines import engines_of
from openneutron.executorch.fx import is_quantize
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.transfer import transfer


def _quantized(model: nn.Module, rows: int, size: float) -> torch.fx.GraphModule:
    chosen, x = Choices(), torch.linspace(-size, size, 4 * rows).reshape(rows, 4)
    return quantize_exported(export(model, (x,)), [(x,)], chosen, engines_of("neutron").quantizer(chosen)).module


def _scales(module: torch.fx.GraphModule) -> list[float]:
    return [node.args[1] for node in module.graph.nodes if is_quantize(node)]


def test_ranges_and_weights_become_those_of_the_source() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    source = _quantized(model, 1, 2.0)
    with torch.no_grad():
        model[0].weight.mul_(0.5)
    target = _quantized(model, 3, 0.1)
    assert _scales(source) != _scales(target)
    assert transfer(source, target) == ""
    assert _scales(source) == _scales(target)
    x = torch.randn(3, 4)
    assert torch.equal(torch.cat([source(row[None]) for row in x]), target(x))


def test_other_operators_are_named_and_nothing_is_copied() -> None:
    source = _quantized(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), 1, 2.0)
    target = _quantized(nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()).eval(), 1, 0.1)
    before = _scales(target)
    assert "aten.relu.default" in transfer(source, target)
    assert _scales(target) == before
