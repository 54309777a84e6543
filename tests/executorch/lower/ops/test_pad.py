from __future__ import annotations

import torch
from torch.nn import functional

from tests.executorch.harness import check, reasons

CASES = {
    "zero": lambda: (lambda x: functional.pad(x, (1, 2, 0, 1)), (torch.randn(1, 3, 4, 5),)),
    "value": lambda: (lambda x: functional.pad(x, (1, 1), value=2.5), (torch.randn(2, 7),)),
    "channels": lambda: (lambda x: functional.pad(x, (0, 0, 0, 0, 1, 1)), (torch.randn(1, 3, 4, 5),)),
    "cutting": lambda: (lambda x: functional.pad(x, (-1, 2)), (torch.randn(2, 7),)),
    "reflect": lambda: (lambda x: functional.pad(x, (1, 2, 1, 0), mode="reflect"), (torch.randn(1, 3, 4, 5),)),
    "reflect 1-D": lambda: (lambda x: functional.pad(x, (2, 1), mode="reflect"), (torch.randn(1, 3, 6),)),
}


def test_pad() -> None:
    assert check(CASES, layouts=True).transposes == 0


def test_infinity_stays_on_cpu() -> None:
    found = reasons(lambda x: functional.pad(torch.tanh(x), (1, 1), value=float("-inf")), (torch.randn(2, 7),))
    assert found
