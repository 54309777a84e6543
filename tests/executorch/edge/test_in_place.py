"""Operators in place are replaced where nobody can tell, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.edge.in_place import without_in_place

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def exported(function: Callable[[torch.Tensor], Any]) -> torch.export.ExportedProgram:
    return torch.export.export(Of(function), (X,))


def test_a_value_that_only_it_reads() -> None:
    program = exported(lambda x: x.tanh().add_(functional.hardswish(x.sin(), inplace=True)))
    made = without_in_place(program)
    assert [str(node.target) for node in made.graph.nodes if node.op == "call_function"] == [
        "aten.tanh.default", "aten.sin.default", "aten.hardswish.default", "aten.add.Tensor",
    ]  # fmt: skip
    assert torch.equal(made.module()(X), program.module()(X))
    assert any(str(node.target) == "aten.add_.Tensor" for node in program.graph.nodes)


def test_nothing_to_do() -> None:
    program = exported(torch.tanh)
    assert without_in_place(program) is program


def read_after(x: torch.Tensor) -> torch.Tensor:
    y = x.tanh()
    shown = y.view(2, 6)
    functional.relu_(y)
    return shown.sin()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (read_after, "others read"),
        (lambda x: x.relu_(), "others read"),
        (lambda x: x.tanh().view(2, 6).relu_(), "of a view"),
        (lambda x: torch.sin(x, out=x.tanh()), "aten.sin.out"),
    ],
)
def test_what_others_see(function: Callable[[torch.Tensor], Any], reason: str) -> None:
    with pytest.raises(Unknown, match=reason):
        without_in_place(exported(function))
