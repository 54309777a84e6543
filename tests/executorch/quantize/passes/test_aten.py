"""Each rewrite of the ATen graph: before and after, and the module computes what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes import PASSES, prepare_for_annotation
from openneutron.executorch.quantize.passes.decompose.decompose_batch_norm import decompose_batch_norm
from openneutron.executorch.quantize.passes.fold_batch_norm import fold_batch_norm
from openneutron.executorch.quantize.passes.fold_constants import fold_constants
from openneutron.executorch.quantize.passes.remove_aliases import remove_aliases
from openneutron.executorch.quantize.passes.remove_dropout import remove_dropout
from openneutron.executorch.quantize.passes.replace.replace_scalars import replace_scalars
from openneutron.executorch.quantize.passes.split_to_slices import split_to_slices

X = torch.linspace(-1, 1, 96).reshape(1, 6, 4, 4)


class Function(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Scaled(nn.Module):
    """Weights made of two parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.gain = nn.Parameter(torch.randn(4, 6, 1, 1)), nn.Parameter(torch.rand(4, 1, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv2d(x, self.weight * self.gain)


def normalized(layer: nn.Module, norm: nn.Module) -> nn.Module:
    norm.running_mean.uniform_(-1, 1)  # type: ignore[operator]
    norm.running_var.uniform_(0.5, 2)  # type: ignore[operator]
    return nn.Sequential(layer, norm)


CASES: dict[str, tuple[Callable[[GraphModule], int], Callable[[], nn.Module], list[str]]] = {
    "convolution and batch norm": (
        fold_batch_norm,
        lambda: normalized(nn.Conv2d(6, 4, 1), nn.BatchNorm2d(4)),
        ["aten.conv2d.default"],
    ),
    "without bias or affine": (
        fold_batch_norm,
        lambda: normalized(nn.Conv2d(6, 4, 3, bias=False), nn.BatchNorm2d(4, affine=False)),
        ["aten.conv2d.default"],
    ),
    "transposed": (
        fold_batch_norm,
        lambda: normalized(nn.ConvTranspose2d(6, 4, 2), nn.BatchNorm2d(4)),
        ["aten.conv_transpose2d.input"],
    ),
    "aliases": (
        remove_aliases,
        lambda: Function(lambda x: torch.ops.aten.alias(torch.ops.aten.alias(x).float().relu())),
        ["aten.relu.default", "aten.alias.default"],
    ),
    "dropout": (remove_dropout, lambda: nn.Sequential(nn.Dropout(), nn.ReLU()), ["aten.relu.default"]),
    "scalars": (
        replace_scalars,
        lambda: Function(lambda x: 3 - ((x * 2 + 0.5) / 4 - 1)),
        ["aten.mul.Tensor", "aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.sub.Tensor"],
    ),
    "chunks": (
        split_to_slices,
        lambda: Function(lambda x: torch.add(*x.chunk(2, 1))),
        ["aten.slice.Tensor", "aten.slice.Tensor", "aten.add.Tensor"],
    ),
    "unbind": (
        split_to_slices,
        lambda: Function(lambda x: x.unbind(1)[2]),
        ["aten.select.int"],
    ),
    "weights made of parameters": (fold_constants, Scaled, ["aten.conv2d.default"]),
    "frequencies counted from nothing": (
        fold_constants,
        lambda: Function(lambda x: x * 10.0 ** (2 * torch.div(torch.arange(4), 2, rounding_mode="floor") / 4)),
        ["aten.mul.Tensor"],
    ),
    "a grid of coordinates": (
        fold_constants,
        lambda: Function(
            lambda x: x * torch.stack(torch.meshgrid(*[torch.linspace(0, 1, 4)] * 2, indexing="ij")).sum(0)
        ),
        ["aten.mul.Tensor"],
    ),
    "batch norm behind an activation": (
        decompose_batch_norm,
        lambda: normalized(nn.ReLU(), nn.BatchNorm2d(6)),
        ["aten.relu.default", "aten.conv2d.default"],
    ),
    "batch norm of rows behind an activation": (
        decompose_batch_norm,
        lambda: normalized(nn.Flatten(2), nn.BatchNorm1d(6)),
        ["aten.flatten.using_ints", "aten.mul.Tensor", "aten.add.Tensor"],
    ),
}


def exported(model: nn.Module) -> GraphModule:
    return torch.export.export(model.eval(), (X,)).module()  # type: ignore[return-value]


def calls(model: GraphModule) -> list[str]:
    return [operator_name(node) for node in model.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", CASES)
def test_before_and_after(name: str) -> None:
    torch.manual_seed(0)
    step, make, after = CASES[name]
    model = exported(make())
    wanted = model(X)
    assert step(model) > 0
    model.graph.eliminate_dead_code()
    model.recompile()
    assert [call for call in calls(model) if call != "aten._assert_tensor_metadata.default"] == after
    torch.testing.assert_close(model(X), wanted, rtol=1e-4, atol=1e-5)
    assert all(node.meta.get("val") is not None for node in model.graph.nodes if node.op == "call_function")


def test_nothing_to_do_changes_nothing() -> None:
    model = exported(nn.ReLU())
    assert [step(model) for step in PASSES] == [0] * len(PASSES)


def test_training_keeps_dropout() -> None:
    model = torch.export.export(nn.Sequential(nn.Dropout(), nn.ReLU()).train(), (X,)).module()
    prepare_for_annotation(model, is_qat=True)  # type: ignore[arg-type]
    assert "aten.dropout.default" in calls(model)  # type: ignore[arg-type]
