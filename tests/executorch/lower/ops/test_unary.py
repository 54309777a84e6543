"""The functions of one value share their lowering; each has its own file and its case here."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from openneutron.executorch.pipeline import build
from openneutron.executorch.run.runtime import load_program
from tests.executorch.harness import check

CASES = {
    "exp": lambda: (torch.exp, (torch.randn(2, 9),)),
    "log": lambda: (torch.log, (torch.rand(2, 9) + 0.1,)),
    "abs": lambda: (torch.abs, (torch.randn(1, 3, 4, 5),)),
    "sqrt": lambda: (torch.sqrt, (torch.rand(2, 9) + 0.01,)),
    "rsqrt": lambda: (torch.rsqrt, (torch.rand(2, 9) + 0.5,)),
    "neg": lambda: (torch.neg, (torch.randn(2, 9) + 1,)),
    "sigmoid": lambda: (torch.sigmoid, (torch.randn(1, 3, 4, 5) * 3,)),
    "sigmoid read with other parameters": lambda: (lambda x: torch.cat([torch.sigmoid(x), x], 1), (torch.randn(2, 5),)),
    "tanh": lambda: (torch.tanh, (torch.randn(2, 9) * 2,)),
    "hardswish": lambda: (functional.hardswish, (torch.randn(1, 3, 4, 5) * 3,)),
    "leaky relu": lambda: (lambda x: functional.leaky_relu(x, 0.1), (torch.randn(2, 9),)),
    "gelu": lambda: (functional.gelu, (torch.randn(2, 9),)),
    "gelu by tanh": lambda: (lambda x: functional.gelu(x, approximate="tanh"), (torch.randn(2, 9),)),
    "elu": lambda: (functional.elu, (torch.randn(2, 9),)),
    "hardsigmoid": lambda: (functional.hardsigmoid, (torch.randn(2, 9) * 3,)),
    "prelu": lambda: (nn.PReLU(3), (torch.randn(1, 3, 4, 5),)),
    "prelu, one slope": lambda: (nn.PReLU(), (torch.randn(2, 7),)),
}


def test_unary() -> None:
    assert check(CASES, layouts=True).transposes == 0


def test_silu() -> None:
    check({"silu": lambda: (functional.silu, (torch.randn(2, 33) * 4,))})


@pytest.mark.parametrize("function", [functional.hardswish, functional.silu, functional.hardsigmoid, nn.PReLU()])
def test_preserved_but_rejected_decomposes(function: object) -> None:
    """An excluded operator is not kept whole, and the program still runs."""
    names = ["aten.hardswish.default", "aten.silu.default", "aten.hardsigmoid.default", "aten.prelu.default"]
    model = nn.Sequential(nn.Linear(4, 4), function if isinstance(function, nn.Module) else _Module(function))
    inputs = (torch.randn(2, 4),)
    torch.manual_seed(0)
    built = build(model.eval(), inputs, calibration=[inputs], operators_not_to_delegate=tuple(names))
    assert not [v for v in built.report.nodes if v.operator in names], "none is left whole"
    assert any((v.delegated and "linear" in v.operator) or "addmm" in v.operator for v in built.report.nodes)
    (y,) = load_program(built.pte).run(*inputs)
    assert (y - built.quantized(*inputs)).abs().max() < 0.02


class _Module(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)  # type: ignore[operator]
