from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.executorch.harness import check, reasons

CASES = {
    "to one pixel": lambda: (nn.AdaptiveAvgPool2d(1), (torch.randn(2, 3, 8, 6),)),
    "to a grid": lambda: (nn.AdaptiveAvgPool2d((4, 3)), (torch.randn(1, 4, 8, 6),)),
    "1-D": lambda: (nn.AdaptiveAvgPool1d(1), (torch.randn(2, 3, 8),)),
}


@pytest.mark.parametrize("channels_last", [False, True])
def test_adaptive_avg_pool2d(channels_last: bool) -> None:
    check(CASES, channels_last=channels_last)


def test_uneven_windows_stay_on_cpu() -> None:
    found = reasons(nn.AdaptiveAvgPool2d(3), (torch.randn(1, 2, 8, 8),))
    assert "8x8 to 3x3" in found["sizes_divide"]
