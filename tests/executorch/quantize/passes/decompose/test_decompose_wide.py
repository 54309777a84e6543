"""Activations without a 16-bit kernel of LiteRT's: written out where 16 bits were asked for, whole elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.passes.decompose.decompose_wide import decompose_wide, wide_operators


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Hardswish(), nn.Hardsigmoid(), nn.SiLU(), nn.GELU(), nn.PReLU(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            x = part(4 * x)
        return x


def prepared(quantizer: NeutronQuantizer) -> Any:
    x = (torch.randn(1, 3, 4, 4),)
    return quantizer.transform_for_annotation(export(Net().eval(), x).module())


def kept(module: Any) -> set[str]:
    names = {operator_name(node).split(".")[1] for node in module.graph.nodes if operator_name(node)}
    return names & {"hardswish", "hardsigmoid", "silu", "gelu", "prelu"}


def test_all_of_them_go_in_a_16_bit_model_and_compute_the_same() -> None:
    made = prepared(NeutronQuantizer(activations="int16"))
    assert not kept(made)
    torch.manual_seed(0)
    x = torch.randn(1, 3, 4, 4)
    assert torch.allclose(made(x), Net().eval()(x), atol=2e-3)


def test_what_stays_in_8_bits_stays_whole() -> None:
    assert kept(prepared(NeutronQuantizer())) == {"hardswish", "hardsigmoid", "silu", "gelu", "prelu"}
    some = prepared(NeutronQuantizer(precision={"SiLU": "int16"}))
    assert kept(some) == {"hardswish", "hardsigmoid", "gelu", "prelu"}


def test_the_price_of_16_bits_counts_the_operators_that_one_becomes() -> None:
    x = (torch.randn(1, 3, 4, 4),)
    for part in Net().parts:
        module = export(part.eval(), x).module()
        (count,) = {wide_operators(node) for node in module.graph.nodes} - {0}
        assert decompose_wide(module, lambda node: True) == 1
        made = [node for node in module.graph.nodes if operator_name(node) and "reshape" not in operator_name(node)]
        assert sum("_guards" not in node.name for node in made) == count
