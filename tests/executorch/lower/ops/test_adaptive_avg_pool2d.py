from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "to one pixel": lambda: (nn.AdaptiveAvgPool2d(1), (torch.randn(2, 3, 8, 6),)),
    "to a grid": lambda: (nn.AdaptiveAvgPool2d((4, 3)), (torch.randn(1, 4, 8, 6),)),
    "uneven windows": lambda: (nn.AdaptiveAvgPool2d((4, 3)), (torch.randn(1, 3, 11, 9),)),
    "more pixels than before": lambda: (nn.AdaptiveAvgPool2d(7), (torch.randn(1, 2, 5, 5),)),
    "1-D, uneven": lambda: (nn.AdaptiveAvgPool1d(5), (torch.randn(2, 3, 12),)),
    "1-D": lambda: (nn.AdaptiveAvgPool1d(1), (torch.randn(2, 3, 8),)),
}


def test_adaptive_avg_pool2d() -> None:
    check(CASES, layouts=True)
