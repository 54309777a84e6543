"""Attention over a cache in 16 bits: forbidden rows have no weight, whatever they hold and however many they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.passes.mask_probabilities import mask_probabilities
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare


class Attention(nn.Module):
    """One query over stored rows, of which those behind its position are forbidden."""

    def __init__(self, context: int, forbidden: float) -> None:
        super().__init__()
        source = torch.Generator().manual_seed(2)
        self.register_buffer("rows", torch.randn(2, context, 8, generator=source))
        self.register_buffer("mask", torch.full((context, context), forbidden).triu(1))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        scores = x @ self.rows.transpose(1, 2) + self.mask[position]
        return torch.softmax(scores, -1) @ self.rows


def samples(context: int) -> list[tuple[torch.Tensor, ...]]:
    source = torch.Generator().manual_seed(4)
    places = [0, 3, 20, context // 2, context - 1]
    return [(torch.randn(2, 1, 8, generator=source), torch.tensor([place])) for place in places]


def quantized(model: nn.Module, context: int, **options: Any) -> Any:
    prepared = prepare(export(model, samples(context)[0]), NeutronQuantizer(**options), samples=samples(context))
    calibrate(prepared, samples(context))
    return convert(prepared)


@pytest.mark.parametrize(("context", "forbidden"), [(96, -1e4), (96, float("-inf")), (512, -1e9)])
def test_few_allowed_rows_of_many(context: int, forbidden: float) -> None:
    model = Attention(context, forbidden).eval()
    made = quantized(model, context, activations="int16")
    assert "aten.mean.dim" in {operator_name(node) for node in made.graph.nodes}
    with torch.no_grad():
        for sample in samples(context):
            assert output_sqnr([model(*sample)], [made(*sample)])[0] > 40


def test_without_a_mask_nothing_changes() -> None:
    class Plain(Attention):
        def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x @ self.rows.transpose(1, 2) * position, -1) @ self.rows

    module = export(Plain(96, 0.0).eval(), samples(96)[0]).module()
    assert mask_probabilities(module, lambda node: True) == 0
