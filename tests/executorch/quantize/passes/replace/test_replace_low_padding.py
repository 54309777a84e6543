"""Padding far below all values in front of a maximum: the maximum runs on the NPU and keeps the steps of its range."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from openneutron.executorch.pipeline import build, quantize
from openneutron.executorch.quantize.choices import Choices

LOWEST = torch.finfo(torch.float32).min
Case = Callable[["Network", torch.Tensor], torch.Tensor]

CASES: dict[str, Case] = {
    "all around, minus infinity": lambda s, x: functional.max_pool2d(s.pad(x, (1, 1, 1, 1), -torch.inf), 3, 2),
    "on two sides, the lowest number": lambda s, x: functional.max_pool2d(s.pad(x, (0, 1, 0, 1), LOWEST), 2, 2),
    "a row joined to it, -1e9": lambda s, x: functional.max_pool2d(
        torch.cat([torch.full((1, 4, 1, 10), -1e9), x], 2), 2, 1
    ),
    "positions masked out": lambda s, x: x.masked_fill(s.mask, -torch.inf).amax((2, 3), keepdim=True),
    "positions chosen": lambda s, x: torch.where(s.mask, -1e9, x).flatten(2).max(2, keepdim=True)[0][..., None],
}


class Network(nn.Module):
    """Maxima of padded values behind one convolution, each behind another one."""

    def __init__(self, *cases: Case) -> None:
        super().__init__()
        self.cases = cases
        self.first = nn.Conv2d(2, 4, 3)
        self.last = nn.ModuleList(nn.Conv2d(4, 3, 1) for _ in cases)
        self.register_buffer("mask", torch.rand(10, 10) > 0.5)

    @staticmethod
    def pad(x: torch.Tensor, sides: tuple[int, ...], value: float) -> torch.Tensor:
        return functional.pad(x, sides, value=value)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.first(x)
        return tuple(last(case(self, x)) for last, case in zip(self.last, self.cases, strict=True))


def test_a_maximum_over_low_padding_is_that_of_the_values() -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(1, 2, 12, 12),) for _ in range(8)]
    report = build(Network(*CASES.values()).eval(), batches[0], calibration=batches).report
    assert {name: one.sqnr for name, one in zip(CASES, report.outputs, strict=True) if (one.sqnr or 0) < 25} == {}
    assert all(one.delegated for one in report.nodes if one.code != "border")


def test_16_bits_have_a_finite_scale_and_their_accuracy() -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(1, 2, 12, 12),) for _ in range(8)]
    made = quantize(Network(*CASES.values()).eval(), batches[0], batches, Choices(activations="int16"))
    assert min(made.sqnr) > 35


def test_a_window_of_padding_alone_keeps_its_number() -> None:
    torch.manual_seed(0)
    network = Network(lambda s, x: functional.max_pool2d(s.pad(x, (0, 4, 0, 0), -1e9), 2, 2).clamp(min=-5.0)).eval()
    batches = [(torch.randn(1, 2, 12, 12),) for _ in range(8)]
    made = quantize(network, batches[0], batches)
    assert any("replace_low_padding was undone" in note for note in made.notes), made.notes


SUMS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "ones are forbidden": lambda x, m: (x + m[:, :, None] * -1e4).max(1).values,
    "ones are allowed": lambda x, m: ((1 - m[:, :, None]) * -1e9 + x).amax(1),
    "the mask as given": lambda x, m: (x + (m * -1e4)[:, :, None]).transpose(1, 2).amax(2),
    "no mask": lambda x, m: (x + m[:, :, None] * -2).amax(1),
}


def test_a_maximum_over_values_with_an_added_mask_keeps_their_steps() -> None:
    class Pooled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in SUMS)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(take(layer(x), mask) for layer, take in zip(self.layers, SUMS.values(), strict=True))

    torch.manual_seed(0)
    batches = [(torch.randn(1, 6, 8), (torch.arange(6) % 4 > at % 4).float()[None]) for at in range(16)]
    batches = [(x, mask) for x, mask in batches if mask.any() and not mask.all()]
    report = build(Pooled().eval(), batches[0], calibration=batches, quality="plain").report
    assert {name: one.sqnr for name, one in zip(SUMS, report.outputs, strict=True) if (one.sqnr or 0) < 25} == {}


def test_an_added_soft_mask_stays_a_sum() -> None:
    class Soft(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return (x + mask[:, :, None] * -1e4).amax(1)

    torch.manual_seed(0)
    batches = [(torch.randn(1, 6, 8), torch.rand(1, 6) * 1e-3) for _ in range(8)]
    report = build(Soft().eval(), batches[0], calibration=batches, quality="plain").report
    assert (report.outputs[0].sqnr or 0) > 25
    assert any("replace_low_padding was undone" in one for one in report.notes)
