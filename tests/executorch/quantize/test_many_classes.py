"""Softmax over many classes in a 16-bit network: on the NPU, at 0 LSB, and close to float."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.many_classes import MOST_WIDE
from openneutron.executorch.run.runtime import load_program
from tests.executorch.harness import Function
from tests.executorch.quantize.passes.test_replace import assert_exact


def logits(*shape: int) -> torch.Tensor:
    """Of each row a few classes lie far above the others."""
    torch.manual_seed(0)
    return 12 * torch.randn(shape)


class Softmaxes(nn.Module):
    def forward(self, *logits: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.softmax(x, 1 if x.shape[-1] == 2 else -1) for x in logits)


def test_it_is_exact_and_close_to_float() -> None:
    model, inputs = Softmaxes(), (logits(1, 4, MOST_WIDE + 1), logits(1, 2, 6000), logits(1, 1000, 2))
    built = build(model, inputs, calibration=[inputs], activations="int16")
    assert all(node.delegated or node.code == "border" for node in built.report.nodes)
    got = load_program(built.pte).run(*inputs)
    assert min(output_sqnr([model(*inputs)], [tuple(got)])) >= 30
    assert_exact(built, inputs, got)


def test_only_many_classes_of_a_16_bit_network_are_rewritten() -> None:
    def operators(classes: int, activations: str) -> list[str]:
        module = export(Function(lambda x: torch.softmax(x, -1)), (logits(1, classes),)).module()
        made = NeutronQuantizer(activations=activations).transform_for_annotation(module)
        return [operator_name(node) for node in made.graph.nodes if operator_name(node)]

    assert operators(MOST_WIDE, "int16") == operators(MOST_WIDE + 1, "int8") == ["aten.softmax.int"]
    assert operators(MOST_WIDE + 1, "int16") == ["aten.amax.default", "aten.sub.Tensor", "aten.softmax.int"]
