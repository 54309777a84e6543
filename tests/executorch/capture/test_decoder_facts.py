"""What a decoder tells its runners: the length of its context and its vocabulary, whatever form the program has."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from openneutron.errors import OptionError
from openneutron.executorch.capture.decoder_facts import decoder_constants, with_given
from openneutron.executorch.capture.export import export
from openneutron.executorch.capture.functional import functional
from tests import decoders

WANTED = {
    "get_max_seq_len": decoders.SHAPE.context, "get_max_context_len": decoders.SHAPE.context,
    "get_vocab_size": decoders.SHAPE.vocabulary, "use_kv_cache": True, "use_sdpa_with_kv_cache": False,
    "enable_dynamic_shape": False,
}  # fmt: skip


def test_a_decoder_in_place_and_functional() -> None:
    program = export(decoders.decoder(), decoders.calibration()[0])
    assert decoder_constants(program) == WANTED
    assert decoder_constants(functional(program)) == WANTED


class Table(nn.Module):
    """Two integers in, but nothing that is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 3)

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return self.table(token) + position


class Counter(nn.Module):
    """A state, but no rows by position."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.count.copy_(self.count + token)
        return self.count * position


@pytest.mark.parametrize("model", [Table(), Counter()])
def test_other_models_are_none(model: nn.Module) -> None:
    assert decoder_constants(export(model.eval(), (torch.tensor([1]), torch.tensor([2])))) == {}


def test_given_ones_come_first() -> None:
    assert with_given({"a": 1, "b": 2}, {"b": 3, "get_eos_ids": (1, 2)}) == {"a": 1, "b": 3, "get_eos_ids": [1, 2]}


@pytest.mark.parametrize(
    "given", [{"forward": 1}, {"no name": 1}, {"text": "a"}, {"none": None}, {"empty": []}, {3: 1}]
)
def test_given_ones_that_no_method_can_give(given: Any) -> None:
    with pytest.raises(OptionError, match="constant method"):
        with_given({}, given)
