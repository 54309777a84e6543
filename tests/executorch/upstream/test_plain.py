"""Without any replacement of upstream's functions a program has the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from openneutron.executorch import pipeline
from openneutron.executorch.upstream.switch import REPLACEMENTS


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = (
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.Conv2d(4, 4, 3, padding=1),
        )
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        return self.head((x + self.second(x)).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer, self.head = kind(4, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mix(x, x, x, need_weights=False)[0]


class Stateful(nn.Module):
    """Keeps its last frames in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("frames", torch.zeros(1, 1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.cat((self.frames, x), 1)
        self.frames.copy_(both[:, 1:])
        return self.linear(both.flatten(1))


@dataclass(frozen=True)
class Case:
    """A network and the shape of its input."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


CASES = {
    "convolutions": Case(
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 1)), (1, 2, 8, 8)
    ),
    "residual": Case(Residual, (1, 2, 6, 6)),
    "gru": Case(lambda: Recurrent(nn.GRU), (1, 3, 4)),
    "attention": Case(Attention, (1, 3, 8)),
    "state": Case(Stateful, (1, 1, 4)),
}
SLOW = {
    "lstm": Case(lambda: Recurrent(nn.LSTM), (1, 6, 4)),
    "many pieces": Case(
        lambda: nn.Sequential(*(one for _ in range(6) for one in (nn.Conv2d(2, 2, 3, padding=1), nn.LogSigmoid()))),
        (1, 2, 5, 5),
    ),
}  # fmt: skip


def compiled(case: Case) -> pipeline.Built:
    torch.manual_seed(0)
    model = case.make().eval()
    samples = [(torch.randn(case.shape),) for _ in range(2)]
    return pipeline.build(model, samples[0], calibration=samples)


def check(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = compiled(case)
    monkeypatch.setenv("OPENNEUTRON_PLAIN", "1")
    assert not any(one.is_used() for one in REPLACEMENTS.values())
    plain = compiled(case)
    assert plain.pte == quick.pte
    assert any("OPENNEUTRON_PLAIN" in note for note in plain.report.notes)
    assert not any("takes longer" in note for note in quick.report.notes)


@pytest.mark.parametrize("name", CASES)
def test_the_same_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(CASES[name], monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("name", SLOW)
def test_the_same_bytes_of_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(SLOW[name], monkeypatch)
