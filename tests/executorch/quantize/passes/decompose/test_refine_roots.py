"""Norms in 16 bits: roots are refined, squares are products, and rows of sizes from 1 to 10 keep 40 dB."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import output_sqnr
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare

SPELLINGS = {
    "rsqrt": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5),
    "division": lambda x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5),
    "power": lambda x: x * (torch.square(x).mean(-1, keepdim=True) + 1e-5).pow(-0.5),
    "module": nn.RMSNorm(64, eps=1e-5),
}


class Norm(nn.Module):
    def __init__(self, spelling: str) -> None:
        super().__init__()
        self.norm = SPELLINGS[spelling]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def rows() -> list[tuple[torch.Tensor, ...]]:
    """Rows of sizes from 0.3 to 3, so that their squares differ by a factor of a hundred."""
    source = torch.Generator().manual_seed(1)
    return [(torch.randn(1, 64, generator=source) * 0.3 * 10 ** (at / 31),) for at in range(32)]


def quantized(spelling: str, **options: Any) -> Any:
    prepared = prepare(export(Norm(spelling).eval(), rows()[0]), NeutronQuantizer(**options))
    calibrate(prepared, rows())
    return convert(prepared)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_row_keeps_its_size(spelling: str) -> None:
    model, made = Norm(spelling), quantized(spelling, activations="int16")
    names = {operator_name(node) for node in made.graph.nodes}
    assert not names & {"aten.pow.Tensor_Scalar", "aten.sqrt.default", "aten.square.default", "aten.div.Tensor"}
    with torch.no_grad():
        for row in rows():
            assert output_sqnr([model(*row)], [made(*row)])[0] > 40


def test_8_bits_keep_one_operator() -> None:
    names = [operator_name(node) for node in quantized("rsqrt").graph.nodes]
    assert names.count("aten.rsqrt.default") == 1 and names.count("aten.mul.Tensor") == 1
