from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "2x2": lambda: (nn.MaxPool2d(2), (torch.randn(1, 3, 8, 6),)),
    "overlapping, padded": lambda: (nn.MaxPool2d(3, 2, 1), (torch.randn(1, 4, 8, 8) - 3,)),
    "ceil mode": lambda: (nn.MaxPool2d(2, ceil_mode=True), (torch.randn(1, 2, 7, 5) - 3,)),
    "one channel": lambda: (nn.MaxPool2d((1, 3), 1), (torch.randn(2, 1, 5, 6),)),
    "1-D": lambda: (nn.MaxPool1d(2), (torch.randn(2, 3, 8),)),
    "without batch": lambda: (nn.MaxPool2d(2), (torch.randn(3, 6, 6),)),
}


def test_max_pool2d() -> None:
    check(CASES, layouts=True)


def test_dilation_stays_on_cpu() -> None:
    assert "dilation is (2, 2)" in reasons(nn.MaxPool2d(2, dilation=2), (torch.randn(1, 2, 8, 8),))["undilated"]


def test_indices_stay_on_cpu() -> None:
    model = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2, return_indices=True))
    assert "computes in float" in reasons(model, (torch.randn(1, 2, 8, 8),))["not_quantized"]
