"""Masks of attention as people write them: the scores that are left keep their steps, the others weigh nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import build, quantize
from openneutron.executorch.run.runtime import load_program

LENGTH, WIDTH = 8, 16
LOWEST = torch.finfo(torch.float32).min
BEHIND = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
Case = Callable[["Attention", torch.Tensor, torch.Tensor], torch.Tensor]

# What is done to the scores; m is 1 for tokens and 0 for padding, as tokenizers give it.
CASES: dict[str, Case] = {
    "a constant of minus infinity": lambda s, a, m: a + s.infinite,
    "a constant of -1e9": lambda s, a, m: a + s.large,
    "a constant behind a view": lambda s, a, m: (a.view(2, 4, LENGTH) + s.large.view(2, 4, LENGTH)).view(a.shape),
    "1 - m, times -10000": lambda s, a, m: a + (1.0 - m[:, None, :].float()) * -10000.0,
    "1 - m, times the lowest number": lambda s, a, m: a + (1.0 - m[:, None, :].float()) * LOWEST,
    "zeros filled with minus infinity": lambda s, a, m: (
        a + torch.zeros_like(a).masked_fill(m[:, None] == 0, -torch.inf)
    ),
    "a choice between numbers": lambda s, a, m: a + torch.where(m[:, None, :] > 0, 0.0, -1e9),
    "two masks": lambda s, a, m: a + s.infinite + torch.zeros(1, 1, LENGTH).masked_fill(m[:, None] == 0, -torch.inf),
    "scores chosen": lambda s, a, m: torch.where(m[:, None, :] > 0, a, -torch.inf),
    "scores not chosen": lambda s, a, m: torch.where(s.behind, torch.tensor(-torch.inf), a),
}


class Attention(nn.Module):
    """One layer that all masks are tried on, and PyTorch's own with padding and its mask."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.own = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.register_buffer("behind", BEHIND)
        self.register_buffer("infinite", torch.zeros(LENGTH, LENGTH).masked_fill(BEHIND, -torch.inf))
        self.register_buffer("large", torch.zeros(LENGTH, LENGTH).masked_fill(BEHIND, -1e9))

    def forward(self, x: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v = self.mixed(x).chunk(3, -1)
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5
        results = [torch.softmax(case(self, scores, m), -1) @ v for case in CASES.values()]
        padding = m == 0
        results.append(self.own(x, x, x, key_padding_mask=padding, need_weights=False)[0])
        return (*results, *self.own(x, x, x, key_padding_mask=padding, attn_mask=self.behind))


OWN = ["padding", "padding and a mask", "padding and a mask, weights"]


def test_masked_attention_is_as_close_to_float_as_any() -> None:
    torch.manual_seed(0)
    m = torch.tensor([[1, 1, 1, 1, 1, 1, 0, 0]])
    samples = [(2 * torch.randn(1, LENGTH, WIDTH), m) for _ in range(4)]
    sqnr = dict(zip([*CASES, *OWN], quantize(Attention().eval(), samples[0], samples).sqnr, strict=True))
    assert min(sqnr.values()) > 28, sqnr


@pytest.mark.parametrize("lowest", [-torch.inf, LOWEST, -1e9])
def test_a_mask_given_in_numbers_forbids_and_takes_no_steps(lowest: float) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mixed = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            q, k, v = self.mixed(x).chunk(3, -1)
            return torch.softmax(q @ k.transpose(-1, -2) / WIDTH**0.5 + mask, -1) @ v

    torch.manual_seed(0)
    allowed = [torch.arange(LENGTH) < 4 + at for at in range(4)]
    samples = [
        (2 * torch.randn(1, LENGTH, WIDTH), torch.where(one, 0.0, lowest).expand(1, LENGTH, LENGTH).clone())
        for one in allowed
    ]
    built = build(Masked().eval(), samples[0], calibration=samples)
    assert built.report.output_sqnr is not None and built.report.output_sqnr > 28
    left = {one.operator.split(".")[1] for one in built.report.nodes if not one.delegated and one.code != "border"}
    assert not left & {"_softmax", "bmm", "mul", "add", "linear", "addmm"}, left


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.own(x, x, x, key_padding_mask=padding, need_weights=False)[0]


def test_booleans_stay_on_the_cpu_and_the_scores_do_not() -> None:
    torch.manual_seed(0)
    model, inputs = Padded().eval(), (torch.randn(1, 4, WIDTH), torch.tensor([[False, False, True, True]]))
    built = build(model, inputs, calibration=[inputs])
    left = {v.operator.split(".")[1] for v in built.report.nodes if not v.delegated and v.code != "border"}
    assert "logical_not" in left and not left & {"_softmax", "bmm", "mul", "add", "linear", "addmm"}, left
    (got,) = load_program(built.pte).run(*inputs)
    with torch.no_grad():
        wanted = model(*inputs)
    assert (got - wanted).abs().max() < 0.04 * wanted.abs().max()
