"""Flip along any dimensions."""

from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "time": lambda: (lambda x: x.flip(1), (torch.randn(2, 7),)),
    "image, both ways": lambda: (lambda x: torch.relu(x).flip(2, 3), (torch.randn(1, 3, 4, 5),)),
}


def test_flip() -> None:
    assert check(CASES).codes.count("GATHER") == 3
