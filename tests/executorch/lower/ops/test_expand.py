from __future__ import annotations

import torch
from torch.nn import functional

from tests.executorch.harness import check

CASES = {
    "expand": lambda: (lambda x: torch.relu(x.expand(2, 3, 4)), (torch.randn(1, 3, 1),)),
    "repeat": lambda: (lambda x: torch.relu(x.repeat(2, 1, 3)), (torch.randn(1, 3, 2),)),
    "pixel shuffle": lambda: (lambda x: torch.relu(functional.pixel_shuffle(x, 2)), (torch.randn(1, 8, 3, 4),)),
}


def test_expand() -> None:
    check(CASES, layouts=True)
