"""Results of any structure: what a `.pte` cannot describe becomes a tuple; what cannot be exported is a sentence."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import openneutron
from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.export import export, with_plain_outputs
from openneutron.executorch.upstream.names import tree_leaves


class Found(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor


class Detector(torch.nn.Module):
    """Named results inside a dictionary, beside a list."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes, self.scores = torch.nn.Linear(16, 4), torch.nn.Linear(16, 6)

    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x)
        return {"found": Found(self.boxes(x), scores.softmax(-1)), "best": [scores.max(-1)]}


def test_named_tuples_are_compiled_in_their_order() -> None:
    torch.manual_seed(0)
    model = Detector().eval()
    samples = [(torch.randn(1, 8, 16),) for _ in range(4)]
    program = openneutron.compile(model, samples[0], calibration=samples)
    wanted, found = (tree_leaves(one(*samples[0])) for one in (model, program.run))
    assert [one.shape for one in found] == [one.shape for one in wanted]
    assert [one.dtype for one in found] == [one.dtype for one in wanted]
    assert all(torch.allclose(a, b, atol=0.05) for a, b in zip(wanted[:3], found[:3], strict=True))


def test_the_callers_program_keeps_its_names() -> None:
    given = torch.export.export(Detector().eval(), (torch.randn(1, 8, 16),))
    made = with_plain_outputs(given)
    assert isinstance(given.module()(torch.randn(1, 8, 16))["found"], Found)
    assert type(made.module()(torch.randn(1, 8, 16))["found"]) is tuple
    plain = torch.nn.Linear(16, 4).eval()
    assert with_plain_outputs(program := export(plain, (torch.randn(1, 16),))) is program


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


class Assigning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.GRU(4, 4)
        self.seen = torch.zeros(1, 1, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = x + 1
        return self.memory(x)[0] + self.seen


def test_recurrent_layers_are_exported_without_a_warning_but_other_attributes_are_told() -> None:
    inputs = (torch.rand(1, 1, 4),)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        export(nn.GRU(4, 4).eval(), inputs)
    assert not [one for one in seen if "_flat_weights" in str(one.message)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        export(Assigning().eval(), inputs)
    assert any("self.seen" in str(one.message) for one in seen)


class Decides(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x


class LeavesTorch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Decides(), r"the model decides by the value of a tensor \(test_export.py:\d+\)"),
        (LeavesTorch(), r"torch.export cannot capture the model \(test_export.py:\d+\): RuntimeError"),
    ],
    ids=["decides", "leaves torch"],
)
def test_a_model_that_cannot_be_captured_is_told_with_its_line_and_nothing_else(
    model: nn.Module, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnsupportedError, match=told):
        export(model, (torch.rand(1, 3),))
    written = capfd.readouterr()
    assert not written.err and not written.out
