"""Subtraction, multiplication, minimum and maximum; addition has its own file."""

from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "sub": lambda: (torch.sub, (torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 5) * 3)),
    "sub broadcast both ways": lambda: (torch.sub, (torch.randn(3, 1), torch.randn(1, 5))),
    "mul": lambda: (torch.mul, (torch.randn(1, 3, 4, 5), torch.randn(1, 3, 1, 1))),
    "mul by a number": lambda: (lambda x: x * -2.5, (torch.randn(2, 7),)),
    "div by a number": lambda: (lambda x: x / 3, (torch.randn(2, 7),)),
    "maximum": lambda: (torch.maximum, (torch.randn(1, 3, 4, 5), torch.randn(1, 3, 4, 5) * 3)),
    "minimum broadcast": lambda: (torch.minimum, (torch.randn(2, 3, 4), torch.randn(4))),
    "minimum of fixed ranges": lambda: (lambda x: torch.minimum(torch.sigmoid(x), torch.tanh(x)), (torch.randn(2, 5),)),
}


def test_binary() -> None:
    assert check(CASES, layouts=True).transposes == 0
