"""What is said when a calibration sample fails: the operator, the sample, and what was wrong."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.pt2e import calibrate, prepare


class Logarithm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.log(x))


GOOD = torch.tensor([[0.5, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("sample", "what"),
    [
        (torch.tensor([[0.0, 0.0, 2.0]]), "gives minus infinity"),  # and two of them, weighed by plus and minus, NaN
        (torch.tensor([[0.5, -1.0, 2.0]]), "gives NaN"),
    ],
)
def test_the_operator_and_the_sample_are_named(sample: torch.Tensor, what: str) -> None:
    torch.manual_seed(0)
    prepared = prepare(export(Logarithm().eval(), (GOOD,)), NeutronQuantizer())
    with pytest.raises(UnsupportedError, match=rf"\(.*\) {what} on calibration sample 1\. Hint"):
        calibrate(prepared, [(GOOD,), (sample,)])
