"""Sums in 16 bits: the variance of a norm has 16 bits also where one token's is far above all others."""

from __future__ import annotations

import torch
from torch import nn

import openneutron as on
from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes.replace.replace_sum import replace_sum


class Sums(nn.Module):
    """A sum that is divided by its count, and one that is not."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.square().sum(-1, keepdim=True) * (1.0 / 6), x.sum((0, 1)), x.sum()


def test_sums_become_means_with_the_same_value() -> None:
    model, x = Sums(), torch.randn(2, 3, 6)
    module = export(model, (x,)).module()
    assert replace_sum(module, lambda node: True) == 2
    module.recompile()
    left = [operator_name(node) for node in module.graph.nodes]
    assert left.count("aten.mean.dim") == 2 and left.count("aten.mul.Tensor") == 1
    assert all(map(torch.allclose, model(x), module(x)))


def test_a_norm_keeps_its_accuracy_beside_a_token_that_is_far_larger() -> None:
    torch.manual_seed(0)
    model = nn.LayerNorm(48)
    samples = [(torch.randn(1, 48),) for _ in range(24)]
    samples[0] = (12 * samples[0][0],)
    program = on.compile(model.eval(), samples[0], calibration=samples, activations="int16", quality="plain")
    with torch.no_grad():
        pairs = [(model(*one), program.run(*one)[0]) for one in samples[1:]]
    wanted, found = (torch.cat(one) for one in zip(*pairs, strict=True))
    assert program.report.totals.neutron_graphs == 1
    assert (wanted - found).square().mean() < 1e-4 * wanted.square().mean()
