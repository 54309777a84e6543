"""Operators under `torch.no_grad()` and a switched-off autocast are quantized and delegated as any others."""

from __future__ import annotations

import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.capture.inline_scopes import inline_scopes
from openneutron.executorch.fx import operator_name
from openneutron.executorch.pipeline import build

IMAGE = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


class Scoped(nn.Module):
    """One scope in another, with two results that are read, and an autocast that is `on` or off."""

    def __init__(self, on: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution, self.linear, self.on = nn.Conv2d(3, 4, 3), nn.Linear(6, 8), on

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.convolution(x)
        with torch.autocast("cpu", enabled=self.on):
            y = x.float() @ x.float().transpose(-1, -2)
            with torch.no_grad():
                first, second = self.linear(y).relu().chunk(2, -1)
        z: torch.Tensor = first - second + x.mean((2, 3), keepdim=True)
        return z


def scopes(model: nn.Module) -> list[str]:
    return [name for node in export(model, IMAGE).graph.nodes if (name := operator_name(node)).startswith("wrap_with")]


def test_scopes_are_inlined() -> None:
    model = Scoped().eval()
    assert not scopes(model)
    program = torch.export.export(model, IMAGE)
    assert torch.equal(inline_scopes(program).module()(*IMAGE), model(*IMAGE))
    assert any("wrap_with" in operator_name(node) for node in program.graph.nodes), "the given program stays as it is"


def test_an_autocast_that_is_on_stays() -> None:
    assert set(scopes(Scoped(on=True).eval())) == {"wrap_with_autocast"}


def test_all_of_it_is_delegated() -> None:
    built = build(Scoped().eval(), IMAGE, calibration=[IMAGE])
    assert {node.code for node in built.report.nodes if not node.delegated} == {"border"}
