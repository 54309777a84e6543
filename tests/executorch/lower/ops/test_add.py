from __future__ import annotations

from typing import Any

import torch
from torch import nn

from openneutron.executorch.pipeline import build
from tests.executorch.harness import check

CASES = {
    "same shape": lambda: (torch.add, (torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 5) * 3)),
    "broadcast channels": lambda: (torch.add, (torch.randn(2, 3, 4, 5), torch.randn(3, 1, 1))),
    "number": lambda: (lambda x: x + 1.5, (torch.randn(2, 7),)),
    "residual with relu": lambda: (Residual(), (torch.randn(1, 4, 6, 6),)),
    "parameter": lambda: (Shift(), (torch.randn(1, 3, 4, 4),)),
    "factor": lambda: (lambda x, y: torch.add(x, y, alpha=2), (torch.randn(3), torch.randn(3))),
    "itself": lambda: (lambda x: x + x, (torch.randn(3, 4),)),
}


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x) + x)


class Shift(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.randn(1, 3, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


def test_add() -> None:
    assert check(CASES, layouts=True).transposes == 0


class Quantized(nn.Module):
    """A program that another quantizer made: its factor was not taken out."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        around = (0.05, 3, -128, 127, torch.int8)
        ops: Any = torch.ops.quantized_decomposed
        x, y = (ops.dequantize_per_tensor(ops.quantize_per_tensor(one, *around), *around) for one in (x, y))
        added = ops.quantize_per_tensor(torch.add(x, y, alpha=2), *around)
        return ops.dequantize_per_tensor(added, *around)  # type: ignore[no-any-return]


def test_factor_of_a_quantized_program_stays_on_cpu() -> None:
    built = build(torch.export.export(Quantized(), (torch.randn(3), torch.randn(3))))
    found = {v.code: v.reason for v in built.report.nodes if not v.delegated}
    assert "alpha is 2" in found["unscaled"]
