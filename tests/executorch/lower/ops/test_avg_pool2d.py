from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "2x2": lambda: (nn.AvgPool2d(2), (torch.randn(1, 3, 8, 6),)),
    "padding counts": lambda: (nn.AvgPool2d(3, 2, 1), (torch.randn(1, 4, 8, 8) - 1,)),
    "padding does not count": lambda: (nn.AvgPool2d(3, 1, 1, count_include_pad=False), (torch.randn(1, 2, 7, 5),)),
    "one channel": lambda: (nn.AvgPool2d((1, 3), 1), (torch.randn(2, 1, 5, 6),)),
    "partly filled at the end": lambda: (nn.AvgPool2d(3, 2, ceil_mode=True), (torch.randn(1, 3, 10, 9),)),
    "partly filled, padding counts": lambda: (nn.AvgPool2d(3, 2, 1, ceil_mode=True), (torch.randn(1, 3, 10, 9),)),
    "partly filled all around": lambda: (nn.AvgPool2d(5, 3, 2, True, False), (torch.randn(1, 3, 11, 9),)),
    "1-D": lambda: (nn.AvgPool1d(2), (torch.randn(2, 3, 8),)),
}


def test_avg_pool2d() -> None:
    check(CASES, layouts=True)


def test_divisor_stays_on_cpu() -> None:
    found = reasons(nn.AvgPool2d(2, divisor_override=3), (torch.randn(1, 2, 8, 8),))
    assert "it is 3" in found["plain_divisor"]
