"""Pieces that a model joins to an output are found, whatever moves them afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from openneutron.executorch.quantize.measure.piece_labels import piece_labels
from openneutron.run.output_parts import join_parts


class Model(nn.Module):
    def __init__(self, run: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x)


CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], list[str]]] = {
    "last": (lambda x: torch.cat([x.exp(), x.sin()[..., :3]], -1), ["columns 0..5", "columns 6..8"]),
    "channels": (lambda x: torch.cat([x.exp(), x.sin()], 1).flatten(2), ["channels 0..1", "channels 2..3"]),
    "permuted": (lambda x: torch.cat([x.exp(), x.sin()], 1).permute(0, 2, 3, 1), ["columns 0..1", "columns 2..3"]),
    "nested": (
        lambda x: torch.cat([torch.cat([x.exp(), x.sin()], 1), x.cos()], 1),
        ["channels 0..1", "channels 2..3", "channels 4..5"],
    ),
    "halves of one": (lambda x: torch.cat([x.exp()[:, :1], x.exp()[:, 1:]], 1), ["channel 0", "channel 1"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_pieces_are_named_by_where_they_lie(case: str) -> None:
    run, names = CASES[case]
    program = torch.export.export(Model(run), (torch.zeros(1, 2, 4, 6),))
    (labels,) = piece_labels(program)
    assert labels is not None
    assert [part.name for part in join_parts(labels.numpy(), labels.shape)] == names


def test_what_is_computed_as_one_has_no_pieces() -> None:
    program = torch.export.export(Model(lambda x: torch.cat([x.exp(), x.sin()], 1) * 2), (torch.zeros(1, 2, 4, 6),))
    assert piece_labels(program) == [None]
