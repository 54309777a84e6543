from __future__ import annotations

import torch
from torch import nn

from tests.executorch.harness import check

CASES = {
    "clone": lambda: (lambda x: torch.relu(x.clone()), (torch.randn(1, 3, 4, 5),)),
    "contiguous": lambda: (
        lambda x: torch.relu(x.to(memory_format=torch.channels_last)).contiguous(),
        (torch.randn(1, 3, 4, 5),),
    ),
    "dropout": lambda: (nn.Sequential(nn.Dropout(), nn.Linear(5, 3)), (torch.randn(2, 5),)),
}


def test_clone() -> None:
    assert check(CASES, layouts=True).transposes == 0
