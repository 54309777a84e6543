"""Steps that a model writes as a loop of its own share their observers, and become one loop of the microcode."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

import openneutron
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes import prepare_for_annotation
from openneutron.executorch.quantize.passes._insert import ROLE_KEY

INPUTS, CELLS = 4, 8


class Gates(nn.Module):
    """What FastGRNN computes, step by step; `begin` is the state before the first."""

    def __init__(self, begin: str = "zeros") -> None:
        super().__init__()
        self.x, self.h = nn.Linear(INPUTS, CELLS), nn.Linear(CELLS, CELLS, bias=False)
        self.mix = nn.Parameter(torch.tensor(0.3))
        self.first = nn.Parameter(torch.randn(1, CELLS))
        self.begin = begin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first if self.begin == "learned" else torch.zeros(x.shape[0], CELLS)
        for step in x.unbind(1) if self.begin == "unbound" else [x[:, at] for at in range(x.shape[1])]:
            gate = torch.sigmoid(self.x(step) + self.h(h))
            h = gate * h + (1 - gate) * torch.sigmoid(self.mix)
        return h


class Cells(nn.Module):
    """Two cells one after another, and a layer that reads every step."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high, self.out = nn.LSTMCell(INPUTS, CELLS), nn.GRUCell(CELLS, CELLS), nn.Linear(CELLS, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = g = torch.zeros(x.shape[0], CELLS)
        found = []
        for step in range(x.shape[1]):
            h, c = self.low(x[:, step], (h, c))
            g = self.high(h, g)
            found.append(self.out(g))
        return torch.stack(found, 1)


class Beside(nn.Module):
    """One layer for five parts of a tensor: nothing is handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(INPUTS, CELLS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.relu(self.one(x[:, at])) for at in range(5)], 1)


class Summed(nn.Module):
    """Steps with an operator that the compiler does not repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.h = nn.Linear(INPUTS, INPUTS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x[:, 0]
        for _ in range(5):
            h = torch.cumsum(self.h(h), 1)
        return h


def roles(model: nn.Module, steps: int = 5, batch: int = 1) -> Counter[object]:
    """How many operators have each role."""
    module = torch.export.export(model.eval(), (torch.randn(batch, steps, INPUTS),)).module()
    assert isinstance(module, GraphModule)
    prepare_for_annotation(module, is_qat=False)
    module.graph.lint()
    found = [(node.meta[ROLE_KEY], operator_name(node)) for node in module.graph.nodes if ROLE_KEY in node.meta]
    assert len({role for role, _ in found}) == len({pair for pair in found if pair[1]}), "a role is one operator's"
    return Counter(role for role, name in found if name)


# Of five steps; what the first computes of constants alone is a constant.
ROLES = {"zeros": [4] + 7 * [5], "learned": 5 * [4] + 3 * [5], "unbound": [4] + 7 * [5]}


@pytest.mark.parametrize("begin", ROLES)
def test_operators_at_one_place_of_all_steps_have_one_role(begin: str) -> None:
    assert sorted(roles(Gates(begin)).values()) == ROLES[begin]


def test_cells_and_what_reads_each_step() -> None:
    assert sorted(roles(Cells()).values()) == 34 * [5]


@pytest.mark.parametrize("model", [Beside(), Summed()], ids=["side by side", "not repeated"])
def test_what_is_no_step_keeps_its_own_observers(model: nn.Module) -> None:
    assert not roles(model)


@pytest.mark.parametrize("network", [Gates, Cells], ids=["gates", "cells"])
def test_microcode_does_not_grow_with_the_steps(network: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = network()
    sizes, errors = [], []
    for steps in (6, 12):
        inputs = (torch.randn(1, steps, INPUTS, generator=torch.Generator().manual_seed(0)),)
        # The search may correct the biases of each step, which then have weights of their own.
        program = openneutron.compile(model.eval(), inputs, calibration=[inputs], observer="minmax", quality="plain")
        sizes.append(program.report.totals.microcode_bytes)
        errors.append((program.run(*inputs)[0] - model(*inputs)).abs().max())
    assert sizes[0] == sizes[1] and max(errors) < 0.05
