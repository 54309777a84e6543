"""Sum, maximum and minimum over dimensions; mean has its own file."""

from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "sum": lambda: (lambda x: x.sum((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "sum keeping": lambda: (lambda x: x.sum(-1, keepdim=True), (torch.randn(2, 9),)),
    "amax": lambda: (lambda x: x.amax((2, 3)), (torch.randn(2, 3, 4, 5),)),
    "amin": lambda: (lambda x: x.amin(1, keepdim=True), (torch.randn(2, 3, 4, 5),)),
}


def test_reduce() -> None:
    assert check(CASES, layouts=True).transposes == 0
