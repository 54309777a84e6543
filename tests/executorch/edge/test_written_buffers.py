"""Buffers that a model writes: the straight way and ExecuTorch's lead to the same bytes, or ExecuTorch's is taken."""

from __future__ import annotations

import pytest
import torch
from executorch.exir import to_edge_transform_and_lower
from torch import nn

from openneutron.executorch.edge.delegate import _straight
from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.edge.written_buffers import written_buffers
from openneutron.executorch.pipeline import quantize
from tests.executorch.edge.test_delegate import partitioner

X = (torch.linspace(-1, 1, 4).reshape(1, 4),)


class Two(nn.Module):
    """Two states, written in another order than they are registered."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(4, 3), nn.Linear(3, 2)
        self.register_buffer("c", torch.zeros(1, 3))
        self.register_buffer("h", torch.zeros(1, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, c = self.cell(x, (self.h, self.c))
        self.h.copy_(h)
        self.c.copy_(c)
        return self.head(h)


class Last(nn.Module):
    """One state; `after` says what happens once it is written."""

    def __init__(self, after: str) -> None:
        super().__init__()
        self.cell, self.after = nn.GRUCell(4, 3), after
        self.register_buffer("h", torch.zeros(1, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.h[:, :2]
        h = self.cell(x, self.h)
        self.h.copy_(h)
        if self.after == "again":
            self.h.copy_(h + 1)
        return {"returned": h, "seen": seen + h[:, :2], "again": h + 2}[self.after]


def test_the_same_bytes_and_verdicts() -> None:
    buffers, keepers = [], [partitioner(), partitioner()]
    for lower, keeper in zip(
        (_straight, lambda program, one: to_edge_transform_and_lower(program, partitioner=[one])), keepers, strict=True
    ):
        torch.manual_seed(0)
        buffers.append(bytes(lower(quantize(Two().eval(), X, [X]).program, keeper).to_executorch().buffer))
    assert buffers[0] == buffers[1] and keepers[0].verdicts == keepers[1].verdicts


@pytest.mark.parametrize(
    ("after", "reason"), [("returned", "read again"), ("seen", "read later"), ("again", "written twice|read later")]
)
def test_where_the_order_matters(after: str, reason: str) -> None:
    program = torch.export.export(Last(after).eval(), X)
    with pytest.raises(Unknown, match=reason):
        written_buffers(program)


def test_nothing_to_do() -> None:
    program = torch.export.export(nn.Linear(4, 2), X)
    assert written_buffers(program) is program
