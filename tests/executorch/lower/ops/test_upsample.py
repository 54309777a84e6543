"""Nearest and bilinear resizing."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.executorch.harness import check, reasons

NEAREST = {
    "twice": lambda: (lambda x: functional.interpolate(x, scale_factor=2), (torch.randn(1, 3, 4, 5),)),
    "to a size": lambda: (lambda x: functional.interpolate(x, size=(7, 9)), (torch.randn(1, 2, 3, 4),)),
    "one channel": lambda: (lambda x: functional.interpolate(x, scale_factor=3), (torch.randn(2, 1, 4, 5),)),
}
BILINEAR = {
    "twice": lambda: (lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), (torch.randn(1, 3, 4, 5),)),
    "three times": lambda: (
        lambda x: functional.interpolate(x, scale_factor=3, mode="bilinear"),
        (torch.randn(1, 2, 4, 5),),
    ),
    "corners": lambda: (
        lambda x: functional.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True),
        (torch.randn(1, 2, 4, 5),),
    ),
}


@pytest.mark.parametrize("cases", [NEAREST, BILINEAR], ids=["nearest", "bilinear"])
def test_upsample(cases: dict) -> None:
    assert check(cases, layouts=True).transposes == 0


def test_other_pixels_stay_on_cpu() -> None:
    found = reasons(lambda x: functional.interpolate(torch.relu(x), scale_factor=1.25), (torch.randn(1, 2, 10, 10),))
    assert "factor of 1.25" in found["same_pixels"]
