from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.export import export


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 8, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        found, _ = self.gru(pack_padded_sequence(x, lengths, batch_first=True))
        return pad_packed_sequence(found, batch_first=True)[0]


def test_packed_sequences_are_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"packs sequences.*padded sequences of one length"):
        export(Packed().eval(), (torch.rand(2, 5, 4), torch.tensor([5, 3])))
