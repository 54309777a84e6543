"""Index of the smallest value."""

from __future__ import annotations

import torch

from tests.executorch.harness import check

CASES = {
    "rows": lambda: (lambda x: x.argmin(0), (torch.randn(6, 4),)),
    "behind a layer": lambda: (lambda x: torch.sigmoid(x).argmin(1), (torch.randn(2, 7),)),
}


def test_argmin() -> None:
    assert check(CASES).codes.count("ARG_MIN") == 2
