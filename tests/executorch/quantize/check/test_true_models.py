"""What is delivered is the user's model: its true SQNR is good, or a warning names the part that loses it.

Each model has a form that a rewrite takes for something simpler.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import openneutron

N = 16
GOOD = 20.0
Batches = list[tuple[torch.Tensor, ...]]


class Made(torch.nn.Module):
    """A module of one expression and its tensors."""

    def __init__(self, function: Callable[..., torch.Tensor], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, torch.nn.Module):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(self, *inputs)


def normal(*shapes: tuple[int, ...], scale: float = 1.0, shift: float = 0.0) -> Batches:
    return [tuple(torch.randn(shape) * scale + shift for shape in shapes) for _ in range(8)]


def uniform(low: float, high: float) -> Batches:
    return [(torch.randn(1, 8, N), torch.rand(1, 8, N) * (high - low) + low) for _ in range(8)]


def outliers() -> Batches:
    found = []
    for x, *_ in normal((1, 8, 64), scale=0.3):
        x[0, torch.arange(8), torch.randint(0, 64, (8,))] = 20.0
        found.append((x,))
    return found


def centred(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-5)


ENDLESS = float("-inf")
LOWEST = torch.finfo(torch.float32).min
FORBIDDEN = torch.arange(N) >= 10
EMPTY_ROWS = torch.ones(1, 1, N, N, dtype=torch.bool).index_fill(2, torch.arange(12, 16), False)
ADDED = torch.zeros(N).masked_fill(FORBIDDEN, ENDLESS)
SLOPE = -torch.arange(N).flip(0).float()
HEADS = ((1, 2, N, 32), (1, 2, N, 32), (1, 2, N, 32))


def exp_sum(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(-x)
    return e / (e.sum(-1, keepdim=True) + 1e-8)


CASES: dict[str, Callable[[], tuple[Made, Batches]]] = {
    "masked scores about -20": lambda: (
        Made(lambda s, x: torch.softmax((s.l(x) - 20).masked_fill(s.m, ENDLESS), -1), m=FORBIDDEN, l=torch.nn.Linear(N, N)),
        normal((1, 8, N))),
    "attention with empty rows": lambda: (
        Made(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=s.m), m=EMPTY_ROWS), normal(*HEADS)),
    "attention less squared distance": lambda: (
        Made(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=-(torch.cdist(q, k + 2) ** 2))),
        normal((1, 2, N, 8), (1, 2, N, 8), (1, 2, N, 8))),
    "distance beyond a radius": lambda: (
        Made(lambda s, x, d: torch.softmax(x + torch.relu(d - 0.5) * -1e4, -1)), uniform(0, 1)),
    "soft mask": lambda: (Made(lambda s, x, m: torch.softmax(x + (1 - m) * -1e4, -1)), uniform(0.9, 1)),
    "distance times 1000": lambda: (Made(lambda s, x, d: torch.softmax(x + d * -1000.0, -1)), uniform(0, 0.01)),
    "normalised and clamped": lambda: (Made(lambda s, x: centred(x).clamp(-5, 5)), outliers()),
    "clamped norm before a layer": lambda: (
        Made(lambda s, x: s.l(centred(x).clamp(-4, 4)), l=torch.nn.Linear(64, 16)), outliers()),
    "deviation clamped": lambda: (
        Made(lambda s, x: (x - x.mean(-1, keepdim=True))
             / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5).clamp(max=2.0)), normal((1, 8, 64), scale=10)),
    "epsilon beside small exponentials": lambda: (Made(lambda s, x: exp_sum(x)), [(x + 25,) for _, x in uniform(0, 5)]),
    "clamp in silu": lambda: (
        Made(lambda s, x: (lambda y: y * torch.sigmoid(y))(x.clamp(-100, 100))), normal((1, 8, N), scale=100)),
    "clamp in softplus": lambda: (
        Made(lambda s, x: torch.log1p(torch.exp(x.clamp(max=85)))), normal((1, 8, N), scale=100)),
    "bias of -60 to 0": lambda: (
        Made(lambda s, x: torch.softmax(x * 30 + s.d, -1), d=torch.linspace(-60, 0, N)), normal((1, N, N))),
    "zeros of a masked softmax": lambda: (
        Made(lambda s, x: (lambda p: torch.where(p > 0, p, x * 0.1))(torch.softmax(x.masked_fill(s.m, ENDLESS), -1)),
             m=FORBIDDEN), normal((1, 8, N))),
    "clamp before atanh": lambda: (
        Made(lambda s, x: torch.atanh((torch.tanh(x) * 1.0).clamp(-0.999999, 0.999999))), normal((1, 8, N), scale=5)),
    "logarithm of a masked softmax": lambda: (
        Made(lambda s, x: F.log_softmax(x.masked_fill(s.m, ENDLESS), -1), m=FORBIDDEN), normal((1, 8, N))),
    "causal attention, large scores": lambda: (
        Made(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        [(q * 3, k * 3, v) for q, k, v in normal(*HEADS)]),
    "filled with the lowest float": lambda: (
        Made(lambda s, x: torch.softmax((x - 30).masked_fill(s.m, LOWEST), -1), m=FORBIDDEN), normal((1, 8, N))),
    "filled with -1e9, scores about 30": lambda: (
        Made(lambda s, x: torch.softmax((x + 30).masked_fill(s.m, -1e9), -1), m=FORBIDDEN), normal((1, 8, N))),
    "added minus infinity, scores about -40": lambda: (
        Made(lambda s, x: torch.softmax(s.l(x) - 40 + s.m, -1), m=ADDED, l=torch.nn.Linear(N, N)), normal((1, 8, N))),
    "computed padding": lambda: (
        Made(lambda s, x, n: torch.softmax((x - 25).masked_fill(n < 0.3, ENDLESS), -1)),
        [(x, n.index_fill(-1, torch.tensor([0]), 1.0)) for x, n in uniform(0, 1)]),
    "sloped bias": lambda: (
        Made(lambda s, q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=s.m), m=SLOPE.expand(1, 1, N, N).clone()),
        normal(*HEADS)),
    "clamp in gelu": lambda: (
        Made(lambda s, x: (lambda y: 0.5 * y * (1 + torch.erf(y / math.sqrt(2))))(x.clamp(-90, 90))),
        normal((1, 8, N), scale=100)),
    "root mean square with a large epsilon": lambda: (
        Made(lambda s, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1.0)), normal((1, 8, 64), scale=0.5)),
    "length with a lower limit": lambda: (
        Made(lambda s, x: x / x.norm(dim=-1, keepdim=True).clamp_min(2.0)), normal((1, 8, N), scale=0.3)),
    "softmax clamped": lambda: (Made(lambda s, x: torch.softmax(x * 3, -1).clamp(0.05, 0.5)), normal((1, 8, N))),
    "sigmoid clamped inside of silu": lambda: (
        Made(lambda s, x: x * torch.sigmoid(x).clamp(0.2, 0.8)), normal((1, 8, 64), scale=4)),
    "swiglu with limits": lambda: (
        Made(lambda s, x: (x[..., :8].clamp(-1, 1) + 1) * (lambda g: g * torch.sigmoid(1.702 * g))(x[..., 8:].clamp(max=1.0))),
        normal((1, 8, N), scale=2)),
    "exponents with a lower limit": lambda: (
        Made(lambda s, x: (lambda e: e / e.sum(-1, keepdim=True))(
            torch.exp((x - x.amax(-1, keepdim=True)).clamp(min=-1)))), normal((1, 8, N), scale=2)),
    "softmax with one more in the sum": lambda: (
        Made(lambda s, x: torch.exp(x) / (1 + torch.exp(x).sum(-1, keepdim=True))), normal((1, 8, N), shift=-3)),
    "norm with a large epsilon": lambda: (Made(lambda s, x: F.layer_norm(x, (64,), eps=0.5)), normal((1, 8, 64))),
}  # fmt: skip


def true_sqnr(wanted: torch.Tensor, found: torch.Tensor) -> float:
    assert not bool(torch.isnan(found).any())
    finite = torch.isfinite(wanted)
    assert torch.equal(wanted[~finite], found[~finite])
    noise = float((wanted - found)[finite].double().square().sum())
    return 10 * math.log10(float(wanted[finite].double().square().sum()) / noise) if noise else 120.0


@pytest.mark.parametrize("name", CASES)
def test_what_is_delivered_is_the_model_or_warned_of(name: str) -> None:
    torch.manual_seed(0)
    model, batches = CASES[name]()
    model.eval()
    program = openneutron.compile(copy.deepcopy(model), batches[0], calibration=batches, quality="plain")
    with torch.no_grad():
        wanted = torch.cat([model(*batch).reshape(-1) for batch in batches])
        found = torch.cat([program.run(*batch)[0].reshape(-1) for batch in batches])
    sqnr = true_sqnr(wanted, found)
    warned = [warning for warning in program.report.warnings if "first layer below" in warning]
    assert sqnr >= GOOD or warned, f"{sqnr:.1f} dB, {program.report.output_sqnr} in the report"
    if name in POOR:
        assert warned, f"{sqnr:.1f} dB: INT8 reaches more than it did"
    else:
        assert sqnr >= GOOD


# INT8 has no form of these: 256 steps of their scores, or of what goes into a pole, are too few.
POOR = frozenset({"soft mask", "epsilon beside small exponentials", "clamp before atanh"})


def test_rows_without_any_score_are_said_to_be_nan() -> None:
    torch.manual_seed(0)
    mask = torch.zeros(8, N, dtype=torch.bool)
    mask[3] = True
    model = Made(
        lambda s, x: torch.softmax(s.l(x).masked_fill(s.m, ENDLESS), -1), m=mask, l=torch.nn.Linear(N, N)
    ).eval()
    batches = normal((1, 8, N))
    program = openneutron.compile(model, batches[0], calibration=batches)
    assert any("aten.softmax.int" in one and "gives NaN in 16 of 128 values" in one for one in program.report.warnings)
