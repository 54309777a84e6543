"""Operators kept from decomposition exactly when they are delegated."""

from __future__ import annotations

import torch
from executorch.exir import to_edge_transform_and_lower
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from openneutron.executorch import NeutronPartitioner, NeutronQuantizer, generate_neutron_compile_spec
from openneutron.executorch.run.runtime import load_program

X = (torch.linspace(-4, 4, 24).reshape(2, 12),)


class Twice(nn.Module):
    """The same function quantized and, behind an excluded layer, in float."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.outside = nn.Linear(12, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.hardswish(self.outside(functional.hardswish(self.inside(x))))


def lowered(exclude: list[str], **options: object) -> tuple[NeutronPartitioner, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    module = torch.export.export(Twice().eval(), X).module()
    prepared = prepare_pt2e(module, NeutronQuantizer(exclude=exclude))
    prepared(*X)
    quantized = convert_pt2e(prepared)
    partitioner = NeutronPartitioner(generate_neutron_compile_spec("imxrt700"), **options)  # type: ignore[arg-type]
    edge = to_edge_transform_and_lower(torch.export.export(quantized, X), partitioner=[partitioner])
    (got,) = load_program(bytes(edge.to_executorch().buffer)).run(*X)
    return partitioner, got, quantized(*X)


def test_all_are_kept_when_all_are_delegated() -> None:
    partitioner, got, wanted = lowered([])
    assert [v.delegated for v in partitioner.verdicts if v.operator == "aten.hardswish.default"] == [True, True]
    assert (got - wanted).abs().max() < 0.1


def test_one_is_kept_and_the_other_decomposes() -> None:
    partitioner, got, wanted = lowered(["hardswish_1", "linear_1"])
    assert [v.delegated for v in partitioner.verdicts if v.operator == "aten.hardswish.default"] == [True]
    assert "aten.clamp.default" in {v.operator for v in partitioner.verdicts if not v.delegated}
    assert (got - wanted).abs().max() < 0.1


def test_the_user_may_ask_for_more() -> None:
    partitioner, _, _ = lowered([], preserve_ops=[torch.ops.aten.linear.default])
    assert "aten.linear.default" in {v.operator for v in partitioner.verdicts if v.delegated}


def test_the_user_may_choose_nodes() -> None:
    linear = torch.ops.aten.linear.default
    partitioner, got, wanted = lowered([], preserve_ops=[linear], check_op_support=lambda node: node.name != "linear_1")
    names = [v.operator for v in partitioner.verdicts if v.operator in ("aten.linear.default", "aten.addmm.default")]
    assert names == ["aten.linear.default", "aten.addmm.default"]
    assert (got - wanted).abs().max() < 0.1
