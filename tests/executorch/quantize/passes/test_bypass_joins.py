"""Slices of joins read the parts: the same values, and a scale of its own for each part."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes import run_passes
from openneutron.executorch.quantize.passes.bypass_joins import bypass_joins
from openneutron.executorch.quantize.passes.split_to_slices import split_to_slices

Tensors = tuple[torch.Tensor, ...]


class Head(torch.nn.Module):
    def __init__(self, take: Callable[[torch.Tensor], Tensors]) -> None:
        super().__init__()
        self.take = take

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> Tensors:
        return self.take(torch.cat([boxes * 2, scores.sigmoid()], 1))


TAKEN: dict[str, Callable[[torch.Tensor], Tensors]] = {
    "split": lambda y: y.split([4, 3], 1),
    "behind a permute": lambda y: y.permute(0, 2, 1).split([4, 3], -1),
    "behind two permutes": lambda y: (y.permute(2, 0, 1).transpose(0, 1)[:, :, 4:],),
    "counted from the end": lambda y: (y[:, -3:], y[:, :-3]),
}
KEPT: dict[str, Callable[[torch.Tensor], Tensors]] = {
    "more than a part": lambda y: (y[:, 3:],),
    "less than a part": lambda y: (y[:, 4:6],),
    "every second": lambda y: (y[:, 4::2],),
    "another dimension": lambda y: (y[:, :, 0:4],),
}
X = torch.randn(1, 4, 7, generator=torch.Generator().manual_seed(0)), torch.randn(1, 3, 7)


@pytest.mark.parametrize("name", [*TAKEN, *KEPT])
def test_values_are_the_same_and_joins_that_nothing_else_reads_are_gone(name: str) -> None:
    take = TAKEN.get(name) or KEPT[name]
    model = export(Head(take).eval(), X).module()
    run_passes([split_to_slices, bypass_joins], model)
    for found, wanted in zip(model(*X), Head(take)(*X), strict=True):
        assert torch.equal(found, wanted)
    assert any(operator_name(node) == "aten.cat.default" for node in model.graph.nodes) is (name in KEPT)
