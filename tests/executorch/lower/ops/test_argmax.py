"""Index of the largest value: the program gives integers, computed on the NPU."""

from __future__ import annotations

import torch

from tests.executorch.harness import check, reasons

CASES = {
    "classes": lambda: (lambda x: x.argmax(1), (torch.randn(2, 10),)),
    "behind a layer": lambda: (lambda x: torch.relu(x).argmax(-1), (torch.randn(2, 3, 8),)),
    "channels of an image": lambda: (lambda x: x.argmax(1), (torch.randn(1, 5, 4, 6),)),
}


def test_argmax() -> None:
    assert check(CASES).codes.count("ARG_MAX") == 3


def test_what_stays_has_a_reason() -> None:
    found = reasons(lambda x: (torch.relu(x).argmax(), x.argmax(1, keepdim=True)), (torch.randn(2, 10),))
    assert "dim is None" in found["one_dimension"] and "keepdim is True" in found["drops_dimension"]
