"""A constant that several operators share does not tie their scales together."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.export import export

from openneutron.executorch.fx import is_quantize, operator_name
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.quantizer import NeutronQuantizer


class Function(nn.Module):
    """A function as a module, with the modules that it calls."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function, self.inner = function, nn.ModuleList(modules)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Limited(nn.Module):
    """Values of very different ranges, limited by one constant."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("least", torch.tensor(-0.4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.maximum(torch.tanh(x), self.least), torch.maximum(x * x * 50, self.least)


def test_layers_limited_by_one_constant_have_scales_of_their_own() -> None:
    x = torch.randn(1, 32, generator=torch.Generator().manual_seed(0))
    made = quantize_exported(export(Limited(), (x,)), [(x,)], Choices(), NeutronQuantizer()).module
    scales = [
        node.args[1] for node in made.graph.nodes
        if is_quantize(node) and operator_name(node.args[0]) == "aten.maximum.default"
    ]  # fmt: skip
    assert len(scales) == 2 and max(scales) > 10 * min(scales)
    (small, _), (wanted, _) = made(x), Limited()(x)
    assert float((small - wanted).abs().max()) < 0.02
