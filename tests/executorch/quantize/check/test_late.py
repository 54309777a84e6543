"""Samples on which two graphs differ are found by their outputs; a state is carried along."""

from __future__ import annotations

import torch
from torch.export import export

from openneutron.executorch.fx import copy_graph, operator_name
from openneutron.executorch.quantize.check.late import samples_that_differ


class Sum(torch.nn.Module):
    """Roots of a running sum, whose clamp matters from 3 on."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.copy_(self.total + x)
        return torch.sqrt(self.total.clamp(max=3.0))


def samples(*numbers: float) -> list[tuple[torch.Tensor]]:
    return [(torch.tensor([number]),) for number in numbers]


def test_the_first_sample_that_differs_depends_on_those_before() -> None:
    module = export(Sum().eval(), samples(1)[0]).module(check_guards=False)
    first = copy_graph(module.graph)
    for node in module.graph.nodes:
        if operator_name(node) == "aten.clamp.default":
            node.replace_all_uses_with(node.args[0])
    assert samples_that_differ(module, first, samples(1, 1, 1)) == []
    assert samples_that_differ(module, first, samples(1, 1, 1, 1, -1, 1)) == [3, 5]
    assert float(module.get_buffer("total")) == 0


def test_samples_with_nan_of_the_model_are_among_them() -> None:
    module = export(Sum().eval(), samples(1)[0]).module(check_guards=False)
    assert samples_that_differ(module, copy_graph(module.graph), samples(1, -2, 3)) == [1]
