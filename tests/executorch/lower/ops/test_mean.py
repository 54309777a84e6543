from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "height and width": lambda: (lambda x: x.mean((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "keeping": lambda: (lambda x: x.mean((-1, -2), keepdim=True), (torch.randn(1, 6, 3, 3),)),
    "channels": lambda: (lambda x: x.mean(1), (torch.randn(2, 3, 4, 5),)),
    "rank 2": lambda: (lambda x: x.mean(1), (torch.randn(4, 10),)),
    "after a convolution": lambda: (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
        (torch.randn(1, 3, 6, 6),),
    ),
}


def test_mean() -> None:
    assert check(CASES, layouts=True).transposes == 0
