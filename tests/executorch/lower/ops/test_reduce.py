"""Sum, mean, maximum and minimum over dimensions."""

from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "sum": lambda: (lambda x: x.sum((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "sum keeping": lambda: (lambda x: x.sum(-1, keepdim=True), (torch.randn(2, 9),)),
    "amax": lambda: (lambda x: x.amax((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "amin": lambda: (lambda x: x.amin(1, keepdim=True), (torch.randn(2, 3, 4, 5),)),
    "mean of height and width": lambda: (lambda x: x.mean((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "mean keeping": lambda: (lambda x: x.mean((-1, -2), keepdim=True), (torch.randn(1, 6, 3, 3),)),
    "mean of channels": lambda: (lambda x: x.mean(1), (torch.randn(2, 3, 4, 5),)),
    "mean of rank 2": lambda: (lambda x: x.mean(1), (torch.randn(4, 10),)),
    "mean after a convolution": lambda: (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()),
        (torch.randn(1, 3, 6, 6),),
    ),
}


def test_reduce() -> None:
    assert check(CASES, layouts=True).transposes == 0
