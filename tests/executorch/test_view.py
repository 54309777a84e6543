from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch import CustomDelegationOptions
from tests.executorch.harness import check, reasons

CASES = {
    "flatten": lambda: (lambda x: torch.relu(x.flatten(1)), (torch.randn(2, 3, 4, 5),)),
    "reshape": lambda: (lambda x: torch.relu(x).reshape(2, 6, 10), (torch.randn(2, 3, 4, 5),)),
    "squeeze": lambda: (lambda x: torch.relu(x).squeeze(1), (torch.randn(2, 1, 4, 5),)),
    "unsqueeze": lambda: (lambda x: torch.relu(x).unsqueeze(2), (torch.randn(2, 3, 4),)),
    "between convolutions": lambda: (
        nn.Sequential(nn.Conv2d(2, 4, 1), nn.Flatten(2), nn.Unflatten(2, (2, 8)), nn.Conv2d(4, 2, 1)),
        (torch.randn(1, 2, 4, 4),),
    ),
}


@pytest.mark.parametrize("channels_last", [False, True])
def test_view(channels_last: bool) -> None:
    check(CASES, channels_last=channels_last)


def test_alone_it_is_not_worth_a_partition() -> None:
    found = reasons(lambda x: x.reshape(6, 2), (torch.randn(3, 4),))
    assert "compute nothing" in found["no_op_partition"]
    assert CustomDelegationOptions().allow_no_op_partitions is False
