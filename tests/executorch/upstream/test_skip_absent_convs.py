"""Patterns are made for the convolutions that a network has, and its trained graph is the one that torchao makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.fx import GraphModule, symbolic_trace
from torchao.quantization.pt2e import qat_utils

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare
from openneutron.executorch.quantize.train.aware import quantize_aware
from openneutron.executorch.upstream.skip_absent_convs import skip_absent_convs

KINDS = (F.conv1d, F.conv2d, F.conv_transpose1d, F.conv_transpose2d)
HELPERS = ("_fuse_conv_bn_qat_helper", "_fold_conv_bn_qat_helper")


class Shared(nn.Module):
    """A quantized value with two readers, and a convolution of one kind."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.linear = nn.Conv2d(1, 2, 3), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv(x).relu()
        return self.linear(y) + y


def quantized() -> GraphModule:
    x = torch.linspace(-1, 1, 36).reshape(1, 1, 6, 6)
    made = prepare(export(Shared().eval(), (x,)), NeutronQuantizer())
    calibrate(made, [(x,)])
    return convert(made)


def shown(module: GraphModule) -> list[Any]:
    return [(node.name, str(node.target), str(node.args), str(node.kwargs)) for node in module.graph.nodes]


@pytest.fixture
def patterns(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds for which patterns are asked; what comes is one that matches nothing, without an export."""
    asked: list[str] = []

    def pattern(function: Callable[..., Any], *_: Any, **__: Any) -> GraphModule:
        captured = [cell.cell_contents for cell in getattr(function, "fn", function).__closure__]
        asked.append(next(one.__name__ for one in captured if one in KINDS))
        return symbolic_trace(lambda x: torch.ops.aten.logdet.default(x))

    monkeypatch.setattr(qat_utils, "_get_aten_graph_module_for_pattern", pattern)
    return asked


@pytest.mark.parametrize("name", HELPERS)
def test_what_a_helper_does_beside_matching_is_done(name: str, patterns: list[str]) -> None:
    plain = getattr(qat_utils, name)(quantized(), F.conv1d, (), False)
    assert set(patterns) == {"conv1d"}
    patterns.clear()
    with skip_absent_convs():
        ours = getattr(qat_utils, name)(quantized(), F.conv1d, (), False)
    assert not patterns
    assert shown(ours) == shown(plain)


@pytest.mark.parametrize("name", HELPERS)
def test_patterns_of_the_kind_that_is_there_are_made(name: str, patterns: list[str]) -> None:
    with skip_absent_convs():
        for kind in KINDS:
            getattr(qat_utils, name)(quantized(), kind, (), False)
    assert set(patterns) == {"conv2d"}


class Normed(nn.Module):
    """Batch norms behind a convolution and behind a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.first = nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2)
        self.linear, self.second = nn.Linear(8, 3), nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.linear(self.first(self.conv(x)).relu().flatten(1)))


@pytest.mark.full
def test_a_trained_network_is_the_one_of_torchao(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> GraphModule:
        torch.manual_seed(1)
        x = torch.randn(4, 1, 4, 4)
        return quantize_aware(Normed(), (x,), NeutronQuantizer(is_qat=True), lambda model: model(x))

    ours = trained()
    monkeypatch.setenv("OPENNEUTRON_PLAIN", "skip_absent_convs")
    plain = trained()
    assert shown(ours) == shown(plain)
    assert all(torch.equal(value, plain.state_dict()[name]) for name, value in ours.state_dict().items())
