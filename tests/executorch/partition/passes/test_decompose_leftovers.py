"""What was kept whole for the NPU and does not fit there decomposes: nothing is left that nobody runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import build
from openneutron.executorch.quantize.passes.decompose._definitions import DEFINITIONS
from openneutron.executorch.run.runtime import load_program


class Activations(nn.Module):
    """Every kind of operator that is kept whole, on tensors of 600,000 bytes: more than mcxn94x has."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 60, 1)
        self.functions = nn.Sequential(nn.SiLU(), nn.Hardswish(), nn.Hardsigmoid(), nn.GELU(), nn.PReLU(100))
        self.last = nn.Linear(100, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.last(self.functions(self.conv(x).transpose(1, 2)).transpose(1, 2))
        return y


@pytest.fixture(scope="module")
def image() -> tuple[torch.Tensor]:
    torch.manual_seed(0)
    return (torch.rand(1, 3, 100, 100),)


@pytest.mark.parametrize("placement", ["all", "fastest"])
def test_it_compiles_runs_and_says_what_it_needed(image: tuple[torch.Tensor], placement: str) -> None:
    built = build(Activations(), image, calibration=[image], target="mcxn94x", placement=placement)
    left = {v.operator: v for v in built.report.nodes if not v.delegated and v.code != "border"}
    assert left["aten.silu.default"].code == "too_large"
    assert "it needs 1,200,000 bytes" in left["aten.silu.default"].reason
    kept = {"silu", "hardswish", "hardsigmoid", "prelu"}
    names = {str(node.target).split(".")[-2] for node in built.edge.graph.nodes if node.op == "call_function"}
    assert not kept & names
    (y,) = load_program(built.pte).run(*image)
    assert built.quantized is not None
    assert (y - built.quantized(*image)).abs().max() <= 0.05


def test_an_operator_that_another_one_becomes_is_decomposed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a reflecting pad is kept whole, ExecuTorch keeps the plain one that it makes of `fold`."""

    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.fold(nn.functional.unfold(self.conv(x), 3, stride=3), (9, 9), 3, stride=3)

    monkeypatch.delitem(DEFINITIONS, "aten.col2im.default")
    given = (torch.rand(1, 2, 9, 9),)
    built = build(Folded(), given, calibration=[given])
    assert {v.operator for v in built.report.nodes if not v.delegated} >= {"aten.index_put.default"}
