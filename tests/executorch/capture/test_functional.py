"""Buffers that are changed in place, however a model writes it, are kept from call to call, or refused with a sentence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import openneutron as on
from openneutron.errors import UnsupportedError
from openneutron.executorch.capture.functional import changes_what_others_see, functional
from openneutron.executorch.quantize.accuracy import GOOD, output_sqnr

STEPS = 12


class Model(nn.Module):
    """Buffers of several kinds and a layer; `forward` is what a case gives."""

    def __init__(self, run: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.run = run
        self.layer = nn.Linear(8, 8)
        self.inner = nn.Module()
        self.register_buffer("m", torch.zeros(1, 8))
        self.register_buffer("n", torch.zeros(1, 8))
        self.register_buffer("ring", torch.zeros(4, 8))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(1, 8, dtype=torch.bool))
        self.inner.register_buffer("m", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> Any:
        return self.run(self, x)


def chain(s: Any, x: torch.Tensor) -> Any:
    s.m.mul_(0.9).add_(x * 0.1)
    return s.layer(x - s.m)


def two_calls(s: Any, x: torch.Tensor) -> Any:
    s.m.mul_(0.9)
    s.m.add_(x * 0.1)
    return s.layer(x - s.m)


def counter(s: Any, x: torch.Tensor) -> Any:
    s.m.add_(1.0)
    return s.layer(x) * s.m


def out_argument(s: Any, x: torch.Tensor) -> Any:
    torch.add(s.m * 0.9, x * 0.1, out=s.m)
    return s.layer(x - s.m)


def row(s: Any, x: torch.Tensor) -> Any:
    s.m[0].mul_(0.5).add_(x[0] * 0.5)
    return s.layer(x - s.m)


def column(s: Any, x: torch.Tensor) -> Any:
    s.m[:, 2] = s.m[:, 2] * 0.5 + x[:, 1]
    return s.layer(x - s.m)


def view(s: Any, x: torch.Tensor) -> Any:
    s.m.add_(x)
    s.m.view(-1).mul_(0.5)
    return s.layer(x - s.m)


def piece(s: Any, x: torch.Tensor) -> Any:
    first, _ = s.m.chunk(2, 1)
    first.mul_(0.8).add_(x[:, :4] * 0.4)
    return s.layer(x - s.m)


def put(s: Any, x: torch.Tensor) -> Any:
    s.m.index_put_((torch.tensor([0]), torch.tensor([3])), x[:, 0])
    return s.layer(x - s.m)


def several(s: Any, x: torch.Tensor) -> Any:
    s.m += x * 0.05
    s.inner.m.mul_(0.5).add_(s.m)
    return s.layer(x - s.inner.m) + s.m


def reassigned(s: Any, x: torch.Tensor) -> Any:
    s.m = s.m * 0.9 + x * 0.1
    return s.layer(x - s.m)


def ring(s: Any, x: torch.Tensor) -> Any:
    s.ring[:-1] = s.ring[1:].clone()
    s.ring[-1] = x[0]
    return s.layer(s.ring.mean(0, keepdim=True))


def integer(s: Any, x: torch.Tensor) -> Any:
    s.count.add_(1)
    return s.layer(x), s.count.clone()


def boolean(s: Any, x: torch.Tensor) -> Any:
    s.seen.logical_or_(x > 1.0)
    return s.layer(x) * s.seen.float()


def no_grad(s: Any, x: torch.Tensor) -> Any:
    with torch.no_grad():
        s.m.mul_(0.5).add_(x)
    return s.layer(x - s.m)


def state_returned(s: Any, x: torch.Tensor) -> Any:
    s.m.mul_(0.5).add_(s.layer(x))
    return s.m


def result_kept(s: Any, x: torch.Tensor) -> Any:
    h = torch.tanh(s.layer(x) + 0.5 * s.m)
    s.m.copy_(h)
    return h


def handed_over(s: Any, x: torch.Tensor) -> Any:
    before = s.m.clone()
    s.m.copy_(s.n)
    s.n.copy_(before * 0.5 + x)
    return s.layer(s.m)


def row_handed_over(s: Any, x: torch.Tensor) -> Any:
    s.m.copy_(s.ring[0:1])
    s.ring[0] = x[0]
    return s.layer(x + s.m)


def filled(s: Any, x: torch.Tensor) -> Any:
    y = s.layer(x - s.m)
    s.m.fill_(1.0)
    return y


def parameter_handed_over(s: Any, x: torch.Tensor) -> Any:
    y = s.layer(x - s.m)
    s.m.copy_(s.layer.bias + 1.0)
    s.n.copy_(s.layer.bias)
    return y + s.n


KEPT = [
    filled,
    parameter_handed_over,
    handed_over,
    row_handed_over,
    chain,
    two_calls,
    counter,
    out_argument,
    row,
    column,
    view,
    piece,
    put,
    several,
    reassigned,
    ring,
    integer,
    boolean,
]
KEPT += [no_grad, state_returned, result_kept]


def samples(count: int = STEPS) -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(1, 8, generator=generator) + 0.5,) for _ in range(count)]


@pytest.mark.parametrize("run", KEPT, ids=lambda run: run.__name__)
def test_the_program_follows_the_module_step_by_step(run: Callable[[Any, torch.Tensor], Any]) -> None:
    torch.manual_seed(0)
    model = Model(run).eval()
    before = copy.deepcopy(model)
    program = on.compile(model, samples()[0], calibration=samples())
    assert all(torch.equal(a, b) for a, b in zip(model.buffers(), before.buffers(), strict=True))
    assert program.report.output_sqnr is not None and program.report.output_sqnr > GOOD
    assert all("still grows after 12 calibration samples" in one for one in program.report.warnings)
    signal = noise = 0.0
    with torch.no_grad():
        for sample in samples():
            wanted, found = before(*sample), program.run(*sample)
            for a, b in zip(wanted if isinstance(wanted, tuple) else (wanted,), found, strict=True):
                signal += float(a.double().square().sum())
                noise += float((a.double() - b.double()).square().sum())
    assert signal > noise * 10 ** (GOOD / 10)


def attribute(s: Any, x: torch.Tensor) -> Any:
    s.hidden.mul_(0.5).add_(x)
    return s.layer(x - s.hidden)


def shared(s: Any, x: torch.Tensor) -> Any:
    s.part.mul_(0.5).add_(x[:, :4])
    return s.layer(x - s.n)


def through_dropout(s: Any, x: torch.Tensor) -> Any:
    F.dropout(s.m, 0.5, s.training).mul_(0.5).add_(x)
    return s.layer(x - s.m)


def list_of_buffers(s: Any, x: torch.Tensor) -> Any:
    torch._foreach_mul_([s.m, s.n], 0.5)
    return s.layer(x - s.m - s.n)


def parameter(s: Any, x: torch.Tensor) -> Any:
    with torch.no_grad():
        s.layer.bias.add_(0.1)
    return s.layer(x)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (list_of_buffers, "list of tensors"),
        (parameter, "parameter layer.bias in place"),
        (attribute, "no buffer"),
        (shared, "buffer part .* shares its memory with n"),
        (through_dropout, "dropout"),
    ],
)
def test_what_cannot_be_kept_is_refused(run: Callable[[Any, torch.Tensor], Any], says: str) -> None:
    model = Model(run).eval()
    model.hidden = torch.zeros(1, 8)
    model.register_buffer("part", model.n[:, :4])
    with pytest.raises(UnsupportedError, match=says):
        on.compile(model, samples()[0], calibration=samples())


def test_programs_without_such_changes_stay_as_they_are() -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)).eval()
    program = torch.export.export(model, (torch.zeros(1, 2, 6, 6),))
    assert not changes_what_others_see(program)
    assert functional(program) is program


def test_the_figure_is_of_the_whole_sequence() -> None:
    """A state that grows has other errors later on than in the first samples."""
    torch.manual_seed(0)
    samples = [(torch.randn(1, 8) + 1,) for _ in range(32)]
    model = Model(counter).eval()
    wanted = copy.deepcopy(model)
    program = on.compile(model, samples[0], calibration=samples)
    with torch.no_grad():
        (truth,) = output_sqnr([wanted(*one) for one in samples], [program.run(*one)[0] for one in samples])
    assert program.report.output_sqnr == pytest.approx(truth, abs=0.01)
