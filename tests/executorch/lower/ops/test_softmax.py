from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "rank 2": lambda: (lambda x: torch.softmax(x, 1), (torch.randn(3, 10) * 3,)),
    "over channels": lambda: (lambda x: torch.softmax(x, 1), (torch.randn(1, 5, 3, 4),)),
    "over width": lambda: (lambda x: torch.softmax(x, -1), (torch.randn(1, 5, 3, 4),)),
    "rank 3": lambda: (lambda x: torch.softmax(x, 1), (torch.randn(2, 4, 6),)),
    "read with other parameters": lambda: (lambda x: torch.softmax(x, 1) + x, (torch.randn(2, 6),)),
}


def test_softmax() -> None:
    check(CASES, layouts=True)
