"""Ranges fit what reads the values: no steps where an activation is flat, few where errors count little, room for results."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import export

from openneutron.executorch.fx import is_quantize, operator_name
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.post_training import quantize_exported
from openneutron.executorch.quantize.quantizer import NeutronQuantizer

LARGE = torch.randn(1, 8, 32, 32, generator=torch.Generator().manual_seed(0)) * 12


class Read(nn.Module):
    """A layer whose values an activation reads."""

    def __init__(self, *behind: nn.Module) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.behind, self.last = nn.Conv2d(8, 8, 1), nn.Sequential(*behind), nn.Conv2d(8, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.behind(self.layer(x)))


def ranges(model: nn.Module, **how: str) -> list[tuple[float, float]]:
    """The ends of each stored value of layers, in the order of the graph."""
    model = model.eval()
    chosen = Choices(fit_ranges=True, **how)  # type: ignore[arg-type]
    made = quantize_exported(export(model, (LARGE,)), [(LARGE,)], chosen, NeutronQuantizer.of(chosen)).module
    nodes = [
        one for one in made.graph.nodes if is_quantize(one) and operator_name(one.args[0]) == "aten.conv2d.default"
    ]
    return [((-128 - one.args[2]) * one.args[1], (127 - one.args[2]) * one.args[1]) for one in nodes]


@pytest.mark.parametrize("observer", ["histogram", "mse", "minmax", "percentile"])
def test_flat_ends_are_cut(observer: str) -> None:
    low, high = ranges(Read(nn.Hardswish()), observer=observer)[0]
    assert -3.5 < low < -2.5 and high > 8
    low, high = ranges(Read(nn.Hardsigmoid()), observer=observer)[0]
    assert -3.5 < low < -2.5 and 2.5 < high < 3.5


def test_errors_count_behind_the_reader() -> None:
    plain, leaky = ranges(Read(nn.Identity()))[0], ranges(Read(nn.LeakyReLU(0.05)))[0]
    assert leaky[0] > 0.75 * plain[0] and abs(leaky[1] - plain[1]) < 0.25 * plain[1]
    assert ranges(Read(nn.PReLU(8, init=0.05)))[0] == pytest.approx(leaky, rel=1e-3)


def test_what_others_read_keeps_its_range() -> None:
    class Both(Read):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            return self.last(nn.functional.hardswish(y)) + y

    assert ranges(Both())[0][0] < -8


def test_results_have_room_beyond_what_was_seen() -> None:
    model = Read(nn.ReLU())
    with torch.no_grad():
        seen = model(LARGE)
    low, high = ranges(model)[-1]
    assert low < 1.05 * float(seen.min()) and high > 1.05 * float(seen.max())
