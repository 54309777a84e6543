"""Results of any structure: what a `.pte` cannot describe becomes a tuple, in the order of the model's results."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

import openneutron
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
    wanted, found = tree_leaves(model(*samples[0])), program.run(*samples[0])
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
