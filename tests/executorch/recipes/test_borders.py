"""Layouts at the borders between Neutron, Cortex-M and portable kernels: always right, and with the fewest copies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.executorch.recipes.hybrid import built, check, engines, operators, side_by_side
from tests.executorch.recipes.networks import Crossing, Inputs, images

layouts = pytest.mark.parametrize("last", [False, True], ids=["contiguous", "channels_last"])


def laid_out(inputs: Inputs, last: bool) -> Inputs:
    return tuple(x.to(memory_format=torch.channels_last) if last else x for x in inputs)


class Border(nn.Module):
    """Neutron on both sides of one operator that is kept from it."""

    def __init__(self, between: Any, channels: int) -> None:
        super().__init__()
        self.before, self.after = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, 4, 1)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(self.between(self.before(x)))


# Name → operator between two convolutions, its Edge name, channels.
BORDERS: dict[str, tuple[Any, str, int]] = {
    "pad": (lambda x: functional.pad(x, (1, 2, 0, 1)), "aten.constant_pad_nd.default", 4),
    "pad_one_channel": (lambda x: functional.pad(x, (1, 2, 3, 1)), "aten.constant_pad_nd.default", 1),
    "max_pool": (lambda x: functional.max_pool2d(x, 2), "aten.max_pool2d_with_indices.default", 4),
    "avg_pool_padded": (lambda x: functional.avg_pool2d(x, 3, 2, 1), "aten.avg_pool2d.default", 4),
    "add": (lambda x: x + x, "aten.add.Tensor", 4),
    "permute": (lambda x: x.permute(0, 1, 3, 2), "aten.permute_copy.default", 3),
    "sigmoid": (torch.sigmoid, "aten.sigmoid.default", 4),
    "clamp": (lambda x: torch.clamp(x, -0.5, 0.5), "aten.clamp.default", 4),
    "flip": (lambda x: x.flip(2), "aten.flip.default", 4),
    "clone": (lambda x: x.clone(memory_format=torch.contiguous_format), "dim_order_ops._clone_dim_order.default", 4),
}


@layouts
def test_layouts_are_right_at_every_border(last: bool) -> None:
    cases = {name: (Border(between, c), images(1, 1, c, 8, 8)[0]) for name, (between, _, c) in BORDERS.items()}
    model, inputs = side_by_side(cases)
    excluded = tuple({operator for _, operator, _ in BORDERS.values()})
    program = built(model, [inputs], channels_last=last, operators_not_to_delegate=excluded)
    owners = engines(program)
    assert owners["aten.convolution.default"] == "neutron"
    assert {owners[name] for name in excluded if name in owners and "dim_order" not in name} == {"cortex_m"}, owners
    check(program, laid_out(inputs, last))


@layouts
def test_nobody_turns_what_both_engines_have_in_nhwc(last: bool) -> None:
    """Pooling on Cortex-M between two convolutions on the NPU: only what the program itself takes and gives is turned."""
    inputs = images(1, 1, 4, 8, 8)
    pool, name, channels = BORDERS["max_pool"]
    program = built(Border(pool, channels), inputs, channels_last=last, operators_not_to_delegate=(name,))
    assert engines(program)[name] == "cortex_m"
    names = operators(program)
    assert not [name for name in names if "transpose" in name or "clone" in name], names
    assert program.partitions[0].output_formats == program.partitions[1].input_formats == (0,)
    assert program.report.whole.copies == (1 if last else 2)
    check(program, laid_out(inputs[0], last))


class Chain(nn.Module):
    """Every ordered pair of the three engines, with `between` at each border and at the program's own."""

    def __init__(self, between: Any, channels: int) -> None:
        super().__init__()
        self.between = between
        self.first, self.second = nn.Conv2d(channels, channels, 3), nn.Conv2d(channels, channels, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.between(self.first(self.between(x)))
        x = self.between(torch.log1p(torch.relu(x)))
        x = self.between(torch.sin(x))
        x = self.between(self.second(x))
        x = self.between(torch.sin(x))
        x = self.between(torch.log1p(torch.relu(x)))
        return self.between(torch.tanh(x))


# Name → what stands at the borders, and the number of channels.
CHAINS: dict[str, tuple[Any, int]] = {
    "pad": (lambda x: functional.pad(x, (1, 0, 2, 1)), 3),
    "pad_one_channel": (lambda x: functional.pad(x, (1, 0, 2, 1)), 1),
    "clone_contiguous": (lambda x: x.clone(memory_format=torch.contiguous_format), 3),
    "clone_channels_last": (lambda x: x.clone(memory_format=torch.channels_last), 3),
}


@layouts
@pytest.mark.parametrize(
    "delegated", [pytest.param(True, marks=pytest.mark.full), False], ids=["pad_on_neutron", "pad_on_cortex_m"]
)
def test_pad_and_clone_between_every_pair_of_engines(last: bool, delegated: bool) -> None:
    model, inputs = side_by_side({name: (Chain(b, c), images(1, 1, c, 8, 8)[0]) for name, (b, c) in CHAINS.items()})
    kept = () if delegated else ("aten.constant_pad_nd.default", "dim_order_ops.*")
    program = built(model, [inputs], channels_last=last, operators_not_to_delegate=kept)
    owners = engines(program)
    assert (owners["aten.sin.default"], owners["aten.log1p.default"]) == ("portable", "cortex_m")
    assert owners["aten.convolution.default"] == "neutron"
    check(program, laid_out(inputs, last))


@layouts
def test_branches_that_cross_engines_back_and_forth(last: bool) -> None:
    program = built(Crossing(), images(3, 1, 3, 8, 8), channels_last=last)
    assert [v.engine for v in program.report.nodes if v.operator == "aten.log1p.default"] == ["cortex_m"] * 2
    check(program, laid_out(images(1, 1, 3, 8, 8, seed=3)[0], last))
