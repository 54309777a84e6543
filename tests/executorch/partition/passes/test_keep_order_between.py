"""Between two graphs of one program tensors stay as the NPU has them, and nothing is transposed."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.pipeline import build
from openneutron.executorch.run.runtime import load_program


class Gated(nn.Module):
    """Fits mcxn94x only in two graphs: the gate needs all of a tensor of 401 kB, beside which the input has no room."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.MaxPool2d(2), nn.Conv2d(16, 16, 1))
        self.expand, self.gate = nn.Conv2d(16, 128, 1), nn.Conv2d(128, 128, 1)
        self.last = nn.Conv2d(128, 2, 1, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.expand(self.stem(x))
        y: torch.Tensor = self.last(wide * torch.sigmoid(self.gate(wide.mean((2, 3), keepdim=True))))
        return y


def test_two_graphs_without_a_transpose_between_them() -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 3, 224, 224),)
    built = build(Gated(), image, calibration=[image], target="mcxn94x")
    assert not [v for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert len(built.partitions) == 2
    assert all(p.report.totals.peak_bytes <= 512 * 1024 for p in built.partitions)
    # The program's input and output are contiguous, what crosses from graph to graph is not.
    assert built.report.whole.copies == 2
    (y,) = load_program(built.pte).run(*image)
    assert built.quantized is not None
    assert (y - built.quantized(*image)).abs().max() <= 0.02
