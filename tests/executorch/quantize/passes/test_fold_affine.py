"""Products with constants and sums with constants join the layers beside them, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import export
from torch.nn import functional

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes.fold_affine import fold_affine
from openneutron.executorch.quantize.quantizer import NeutronQuantizer
from tests.executorch.quantize.passes.test_separate_constants import Function

X = torch.randn(1, 4, 6, 6, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Two layers with what `form` puts between them and behind the first."""

    def __init__(self, form: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.form = form
        self.first, self.padded = nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pointwise, self.back = nn.Conv2d(8, 4, 1, bias=False), nn.ConvTranspose2d(8, 4, 2, 2)
        self.register_buffer("factors", torch.linspace(-1, 2, 8).reshape(1, 8, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.form:
            case "before":
                return torch.relu((self.first(x) * 0.2 + 0.5) / 3 - 1)
            case "channels":
                return torch.relu(self.first(x) * self.factors + self.factors)
            case "behind":
                return self.pointwise(torch.tanh(self.first(x)) * 0.4 - 0.3)
            case "padded":
                return self.padded(torch.tanh(self.first(x)) * 0.4 - 0.3)
            case "transposed":
                return self.back(torch.tanh(self.first(x)) * 0.4)
            case "both":
                y = torch.tanh(self.first(x)) * 2
                return self.pointwise(y) + self.pointwise(self.padded(y))
        y = torch.tanh(self.first(x)) * 2
        return self.pointwise(y) + y.mean()


@pytest.mark.parametrize(
    ("form", "left"),
    [
        ("before", 0),
        ("channels", 0),
        ("behind", 0),
        ("padded", 1),
        ("transposed", 0),
        ("both", 1),
        ("read elsewhere", 2),
    ],
)
def test_what_is_folded(form: str, left: int) -> None:
    model = Net(form).eval()
    module = export(model, (X,)).module()
    wanted = model(X)
    fold_affine(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert torch.allclose(module(X), wanted, atol=1e-5)
    names = [operator_name(node) for node in module.graph.nodes]
    assert sum(name.startswith(("aten.mul", "aten.add", "aten.sub", "aten.div")) for name in names) == left


def test_a_hard_swish_is_recognised_before_its_division_is_folded() -> None:
    model = Net("behind").eval()

    def forward(x: torch.Tensor) -> torch.Tensor:
        y = model.first(x)
        return model.pointwise(y * functional.relu6(y + 3) / 6)

    module = NeutronQuantizer().transform_for_annotation(export(Function(forward, model), (X,)).module())
    assert "aten.hardswish.default" in {operator_name(node) for node in module.graph.nodes}
