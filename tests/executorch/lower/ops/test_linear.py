from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "with bias": lambda: (nn.Linear(12, 7), (torch.randn(3, 12),)),
    "relu, no bias": lambda: (nn.Sequential(nn.Linear(9, 5, bias=False), nn.ReLU()), (torch.randn(1, 9),)),
    "three dimensions": lambda: (nn.Linear(6, 4), (torch.randn(2, 5, 6),)),
    "after flatten": lambda: (
        nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(4 * 4 * 4, 6)),
        (torch.randn(2, 2, 6, 6),),
    ),
    "huge bias": lambda: (_huge_bias(), (torch.randn(2, 8) * 1e-4,)),
}


def _huge_bias() -> nn.Module:
    layer = nn.Linear(8, 4)
    with torch.no_grad():
        layer.weight[1] = 0
        layer.weight.mul_(1e-3)
        layer.bias.copy_(torch.tensor([5.0, -5.0, 1.0, 0.0]))
    return layer


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(6, 3))
        self.bias = nn.Parameter(torch.randn(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, torch.mm(x, self.matrix) @ self.matrix.T, self.matrix)


@pytest.mark.parametrize("per_channel", [False, True])
def test_linear(per_channel: bool) -> None:
    checked = check(CASES, per_channel=per_channel)
    assert checked.transposes == 0


def test_matrix_products_with_parameters() -> None:
    check({"product": lambda: (Product(), (torch.randn(4, 6),))})


def test_scaled_addmm_stays_on_cpu() -> None:
    class Scaled(Product):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.addmm(self.bias, x, self.matrix, alpha=2.0)

    assert "alpha is 2" in reasons(Scaled(), (torch.randn(4, 6),))["unscaled"]
