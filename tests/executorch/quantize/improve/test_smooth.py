"""Smoothing leaves the float function alone and takes outliers out of what norms give."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.improve.smooth import smooth

TOKENS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3))


class _Block(nn.Module):
    """A norm with one loud channel, read by three layers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norm = nn.LayerNorm(8)
        self.norm.weight.data[2] = 60.0
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm(x)
        return torch.softmax(self.q(n) @ self.k(n).transpose(1, 2), -1) @ self.v(n)


class _Residual(_Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm(x)
        return n + self.q(n)


class _Turned(_Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.q(self.norm(x).transpose(0, 1))


def exported(model: nn.Module) -> Any:
    return torch.export.export(model.eval(), (TOKENS,)).module(check_guards=False)


@pytest.mark.parametrize(("kind", "norms"), [(_Block, 1), (_Residual, 0), (_Turned, 1)])
def test_the_float_function_stays(kind: type[nn.Module], norms: int) -> None:
    model = kind()
    module = exported(model)
    with torch.no_grad():
        wanted = model(TOKENS)
        assert smooth(module, [(TOKENS,)]) == norms
        torch.testing.assert_close(module(TOKENS), wanted, rtol=1e-4, atol=1e-4)


def test_the_loud_channel_is_quieter() -> None:
    def spread(module: Any) -> float:
        node = next(node for node in module.graph.nodes if operator_name(node) == "aten.layer_norm.default")
        weight = getattr(module, str(node.args[2].target), None)
        gain = (weight if weight is not None else module.norm.weight).detach().abs()
        return float(gain.max() / gain.min())

    module = exported(_Block())
    before = spread(module)
    smooth(module, [(TOKENS,)])
    assert before > 50 and spread(module) < before / 4


def test_a_model_without_norms_is_left_alone() -> None:
    assert smooth(torch.export.export(nn.Linear(8, 4), (TOKENS,)).module(check_guards=False), [(TOKENS,)]) == 0
