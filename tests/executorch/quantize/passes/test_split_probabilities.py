"""Attention over many tokens keeps its small probabilities, on the NPU and at 0 LSB."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare


class Attention(nn.Module):
    """Self-attention; `sharp` makes a few tokens take most of the weight."""

    def __init__(self, sharp: float = 1.0) -> None:
        super().__init__()
        self.attention, self.sharp = nn.MultiheadAttention(32, 2, batch_first=True), sharp

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.attention(x * self.sharp, x * self.sharp, x, need_weights=False)[0]
        return y


@pytest.mark.parametrize(("tokens", "sharp"), [(96, 1.0), (512, 1.0), (512, 4.0)])
def test_it_stays_close_to_float(tokens: int, sharp: float) -> None:
    torch.manual_seed(0)
    model, samples = Attention(sharp).eval(), [(torch.randn(1, tokens, 32),) for _ in range(2)]
    with torch.no_grad():
        prepared = prepare(export(model, samples[0]), NeutronQuantizer())
        calibrate(prepared, samples)
        quantized = convert(prepared)
        (sqnr,) = output_sqnr([model(*samples[1])], [quantized(*samples[1])])
    assert sqnr >= 20


def test_all_of_it_runs_on_the_npu() -> None:
    torch.manual_seed(0)
    sample = (torch.randn(1, 72, 32),)
    built = build(Attention(), sample, calibration=[sample])
    assert not [v for v in built.report.nodes if not v.delegated and v.code != "border"]
    codes = {op.code for op in built.report.operators}
    assert "SOFTMAX" not in codes and {"BATCH_MATMUL", "REDUCE_MAX"} <= codes
    assert built.report.output_sqnr is not None and built.report.output_sqnr > 20
