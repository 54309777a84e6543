"""What a program is made of beside its operators: parameters, names, outputs; and what is left to ExecuTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.edge.direct import check, direct_edge
from openneutron.executorch.edge.draft import Unknown
from tests.executorch.edge.test_rules import compare

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Named(nn.Module):
    """An argument with a name of Python's, a parameter that nothing reads, a result given twice."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Parameter(torch.ones(3))

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.used(input)
        return y, y


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = nn.Buffer(torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.copy_(x.tanh())
        return x.sin()


class Passing(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x.sin()


class Unread(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.tanh()
        return x.sin()


class Turned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Buffer(torch.ones(4, 3).t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


class Again(nn.Module):
    """Stored, read and stored again with the same scale."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        how = (0.1, 0, -128, 127, torch.int8)
        ops = torch.ops.quantized_decomposed
        once = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *how), *how)
        return ops.dequantize_per_tensor(ops.quantize_per_tensor(once, *how), *how)


def test_names_and_parameters() -> None:
    compare(torch.export.export(Named(), (X,)), torch.export.export(Named(), (X,)))


def test_the_given_program_stays_as_it_was() -> None:
    program = torch.export.export(Named(), (X,))
    before = str(program), list(program.state_dict)
    direct_edge(program, ())
    assert (str(program), list(program.state_dict)) == before


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Counting, "copy_|a buffer"),
        (Passing, "nothing computes"),
        (Unread, "whose result is unused"),
        (Turned, "weight, which is neither contiguous"),
        (Again, "quantized again"),
    ],
)
def test_what_passes_would_change(model: type[nn.Module], reason: str) -> None:
    with pytest.raises(Unknown, match=reason):
        check(torch.export.export(model(), (X,)))
