"""Masks of several comparisons run on the NPU as numbers, exactly."""

from __future__ import annotations

import torch

from tests.executorch.harness import Case, check, reasons


def two() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 6, 5), torch.randn(2, 6, 5)


ODD = torch.tensor([True, False, True]).reshape(1, 3, 1, 1)
CASES: dict[str, Case] = {
    "both": lambda: (lambda x, y: torch.where((x > 0.1) & (y < 0.5), x, y), two()),
    "neither": lambda: (lambda x, y: torch.where(~((x > 0.1) | (y < 0.5)), x, -1.0), two()),
    "one of them": lambda: (lambda x, y: torch.where(torch.logical_xor(x > 0.1, y < 0.5), x, y), two()),
    "views and a constant": lambda: (
        lambda x, y: torch.where((x > y).unsqueeze(1) & ODD, y.unsqueeze(1), 0.0),
        two(),
    ),
    "counted": lambda: (lambda x, y: ((x > 0) & (y > 0)).float().mean(1), two()),
    "numbers": lambda: (lambda x, y: torch.where((x > 0) & (y > 0), 2.0, -1.0), two()),
    "a range": lambda: (lambda x: torch.where((x > -0.5) & (x < 0.5), x, 2.0), two()[:1]),
}


def test_masks_of_several_comparisons() -> None:
    check(CASES)


def test_a_mask_that_is_an_input_stays() -> None:
    given = torch.randn(2, 3), torch.tensor([[True, False, True]])
    assert "bool" in reasons(lambda x, mask: torch.where((x > 0) & mask, x, 0.0) + x.relu(), given)["other_type"]
