from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "bmm": lambda: (torch.bmm, (torch.randn(2, 3, 4), torch.randn(2, 4, 5))),
    "matmul of rank 4": lambda: (torch.matmul, (torch.randn(1, 2, 3, 4), torch.randn(1, 2, 4, 5) + 1)),
    "attention scores": lambda: (lambda q, k: q @ k.transpose(-2, -1), (torch.randn(2, 3, 4), torch.randn(2, 6, 4))),
    "broadcast": lambda: (lambda x, y: x @ y, (torch.randn(2, 3, 4), torch.randn(1, 4, 5).expand(2, 4, 5))),
    "two matrices": lambda: (torch.mm, (torch.randn(3, 4), torch.randn(4, 5))),
    "computed weights": lambda: (torch.nn.functional.linear, (torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5))),
}


def test_bmm() -> None:
    check(CASES)
