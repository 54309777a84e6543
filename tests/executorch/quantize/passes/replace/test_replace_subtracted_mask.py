"""Subtracted masks: the same floats from a sum, and the accuracy of masks that are added."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize.passes import run_passes
from openneutron.executorch.quantize.passes.replace.replace_subtracted_mask import replace_subtracted_mask


class Masked(nn.Module):
    """A softmax and a maximum of masked values, and differences without a mask."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        forbidden = mask[:, :, None]
        return torch.softmax(x - 1e9 * mask[:, None], -1), (x - forbidden * 1e4).amax(1), x - forbidden * 2 - 1


def samples() -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(0)
    return [(torch.randn(1, 6, 6), (torch.arange(6) > 1 + at % 4).float()[None]) for at in range(16)]


def test_large_products_are_added_and_floats_stay_the_same() -> None:
    given = samples()[0]
    model = export(Masked().eval(), given).module()
    assert run_passes([replace_subtracted_mask], model) is model
    assert [operator_name(node) for node in model.graph.nodes].count("aten.sub.Tensor") == 2
    for found, wanted in zip(model(*given), Masked()(*given), strict=True):
        assert torch.equal(found, wanted)


def test_values_beside_a_subtracted_mask_keep_their_steps() -> None:
    report = build(Masked().eval(), samples()[0], calibration=samples(), quality="plain").report
    assert min(one.sqnr or 0.0 for one in report.outputs) > 25
