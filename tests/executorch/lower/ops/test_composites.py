"""Recurrent layers, attention and stray batch norms, through their decomposition."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import build
from openneutron.executorch.run.runtime import load_program
from tests.executorch.harness import Branches


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layer = kind(6, 5, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mixer(x, x, x, need_weights=False)[0] + x


class Masked(nn.Module):
    """Attention by hand, with a mask of minus infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Linear(8, 24)
        self.register_buffer("behind", torch.ones(7, 7, dtype=torch.bool).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.mixed(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2) / 3).masked_fill(self.behind, float("-inf"))
        return scores.softmax(-1) @ v


class Stray(nn.Module):
    """A batch norm before the convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 1)
        self.norm.running_mean.uniform_(-1, 1)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.relu(self.norm(x)))


# Two steps of a sequence: the second reads what the first remembered.
CASES = {
    "gru": lambda: (Recurrent(nn.GRU), torch.randn(1, 2, 6)),
    "lstm": lambda: (Recurrent(nn.LSTM), torch.randn(1, 2, 6)),
    "attention": lambda: (Attention(), torch.randn(1, 7, 8)),
    "masked attention": lambda: (Masked(), torch.randn(1, 7, 8)),
    "group norm": lambda: (nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4)), torch.randn(1, 3, 5, 5)),
    "plain recurrent": lambda: (Recurrent(nn.RNN), torch.randn(1, 2, 6)),
    "batch norm": lambda: (Stray(), torch.randn(1, 3, 5, 5)),
}


def test_composites_run_on_the_npu() -> None:
    """Side by side in one program, to pay for one export."""
    torch.manual_seed(0)
    made = {name: make() for name, make in CASES.items()}
    model = Branches({name: module for name, (module, _) in made.items()}, [1] * len(made)).eval()
    inputs = tuple(x for _, x in made.values())
    built = build(model, inputs, calibration=[inputs])
    left = [(v.source, v.operator, v.reason) for v in built.report.nodes if not v.delegated and v.code != "border"]
    assert not left, "; ".join(map(str, left))
    for name, got, wanted in zip(made, load_program(built.pte).run(*inputs), model(*inputs), strict=True):
        assert (got - wanted).abs().max() < 0.08 * wanted.abs().max(), name


class Listener(nn.Module):
    """A layer in both directions: all of its states, and the mean of them."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.layer, self.head = kind(6, 5, batch_first=True, bidirectional=True), nn.Linear(10, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states = self.layer(x)[0]
        return states, self.head(states.mean(1))


@pytest.mark.parametrize(("kind", "activations"), [(nn.GRU, "int8"), (nn.LSTM, "int16")])
def test_microcode_is_as_large_for_any_number_of_steps(kind: type[nn.Module], activations: str) -> None:
    """Whatever calibration found: zero points and shifts are zero or not."""
    sizes = set()
    for steps in (6, 9, 31):
        torch.manual_seed(0)
        model = Listener(kind).eval()
        x = (torch.randn(1, steps, 6) + steps % 2,)
        built = build(model, x, calibration=[x], activations=activations)
        assert built.report.kernels and all(node.delegated for node in built.report.nodes if node.code != "border")
        sizes.add(built.report.totals.microcode_bytes)
    assert len(sizes) == 1
