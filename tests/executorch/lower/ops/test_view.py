from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch import CustomDelegationOptions
from openneutron.executorch.lower.ops.view import pair_dimensions
from tests.executorch.harness import check, reasons

CASES = {
    "flatten": lambda: (lambda x: torch.relu(x.flatten(1)), (torch.randn(2, 3, 4, 5),)),
    "reshape": lambda: (lambda x: torch.relu(x).reshape(2, 6, 10), (torch.randn(2, 3, 4, 5),)),
    "squeeze": lambda: (lambda x: torch.relu(x).squeeze(1), (torch.randn(2, 1, 4, 5),)),
    "unsqueeze": lambda: (lambda x: torch.relu(x).unsqueeze(2), (torch.randn(2, 3, 4),)),
    "to a single number": lambda: (lambda x: torch.sigmoid(x.mean((1, 2))).reshape(()), (torch.randn(1, 2, 3),)),
    "between convolutions": lambda: (
        nn.Sequential(nn.Conv2d(2, 4, 1), nn.Flatten(2), nn.Unflatten(2, (2, 8)), nn.Conv2d(4, 2, 1)),
        (torch.randn(1, 2, 4, 4),),
    ),
}


class Shuffle(nn.Module):
    """Channel shuffle: two views and a transpose of channel groups."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        n, c, h, w = y.shape
        return self.second(y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))


def test_channel_shuffle_moves_channels_only() -> None:
    checked = check({"shuffle": lambda: (Shuffle(), (torch.randn(1, 4, 6, 5),))})
    assert checked.transposes == 1


@pytest.mark.parametrize(
    "before, after, groups",
    [
        ((1, 8, 4, 4), (1, 128), [((0,), (0,)), ((1, 2, 3), (1,))]),
        ((2, 8, 3), (2, 2, 4, 3), [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]),
        ((1, 6), (2, 3), [((0, 1), (0, 1))]),
        ((4, 1, 1), (2, 2), [((0, 1, 2), (0, 1))]),
    ],
)
def test_paired(before: tuple[int, ...], after: tuple[int, ...], groups: list) -> None:
    assert pair_dimensions(before, after) == groups


def test_view() -> None:
    check(CASES, layouts=True)


def test_alone_it_is_not_worth_a_partition() -> None:
    found = reasons(lambda x: x.reshape(6, 2), (torch.randn(3, 4),))
    assert "compute nothing" in found["no_op_partition"]
    assert CustomDelegationOptions().allow_no_op_partitions is False
