from __future__ import annotations

import torch
import torchao.quantization.pt2e  # noqa: F401  registers the quantized operators
from torch import nn

from openneutron.executorch.fx import is_dequantize
from openneutron.executorch.partition.passes.split_dequantize import split_dequantize
from tests.executorch.ordered import ordered

quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default


class TwoReaders(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = dequantize(quantize(x, 0.1, 0, -128, 127, torch.int8), 0.1, 0, -128, 127, torch.int8)
        return torch.relu(y), ordered(y)


def test_each_reader_gets_its_own_and_the_program_stays() -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(TwoReaders(), (x,))
    nodes = len(program.graph.nodes)
    split = split_dequantize(program)
    assert [len(node.users) for node in split.graph.nodes if is_dequantize(node)] == [1, 1]
    assert len(program.graph.nodes) == nodes
    for got, wanted in zip(split.module()(x), program.module()(x), strict=True):
        assert torch.equal(got, wanted)
    assert split_dequantize(split) is split


class AlsoGiven(nn.Module):
    """A quantized value that another operator reads is an output too."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = dequantize(quantize(x, 0.1, 0, -128, 127, torch.int8), 0.1, 0, -128, 127, torch.int8)
        return torch.relu(y), y


def test_an_output_keeps_its_name() -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(AlsoGiven(), (x,))
    split = split_dequantize(program)
    assert [len(node.users) for node in split.graph.nodes if is_dequantize(node)] == [1, 1]
    assert split.graph_signature.user_outputs == program.graph_signature.user_outputs
    split.validate()
    for got, wanted in zip(split.module()(x), program.module()(x), strict=True):
        assert torch.equal(got, wanted)
