"""Reasons of PyTorch operators that stay on the CPU name what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.cli.main import run
from openneutron.errors import UnsupportedError
from openneutron.executorch import ways_out
from openneutron.executorch.operators import lowerings
from tests.executorch.harness import Function

NAMES = sorted(ways_out._WAYS_OUT)
# What the NPU runs in some forms: the hint is for the others.
PARTLY_LOWERED = {"aten.embedding", "aten.eq", "aten.index", "aten.where", "dim_order_ops._to_dim_order_copy"}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_operators_that_no_rule_lowers(name: str) -> None:
    package, _, operator = name.partition(".")
    if package == "aten":
        assert hasattr(torch.ops.aten, operator)
    lowered = any(edge.rpartition(".")[0] == name for edge in lowerings())
    assert not lowered or name in PARTLY_LOWERED
    assert ways_out.way_out(name) == ways_out.way_out(f"{name}.default") or package == name


class Best(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.topk(self.layer(x), 4)[0]


def test_a_compile_says_what_to_write_instead() -> None:
    inputs = (torch.rand(1, 16),)
    program = on.compile(Best().eval(), inputs, calibration=[inputs], quality="plain")
    (found,) = (node for node in program.verdicts if node.operator == "aten.topk.default")
    why, hint = ways_out.way_out("aten.topk")
    assert not found.delegated and found.reason.endswith(f"has no lowering: {why}") and found.hint == hint


def weigh(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return nn.functional.conv3d(x, weight)


def divide(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.avg_pool3d(x, 2, divisor_override=3)


def locate(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return nn.functional.max_pool3d(x, 2, return_indices=True)


VOLUME = torch.rand(1, 2, 4, 6, 6)


@pytest.mark.parametrize(
    ("function", "inputs", "wanted"),
    [
        (weigh, (VOLUME, torch.rand(2, 2, 3, 3, 3)), ways_out.VOLUMES),
        (divide, (VOLUME,), ways_out.way_out("aten.avg_pool3d")),
        (locate, (VOLUME,), ways_out.way_out("aten.max_pool3d_with_indices")),
    ],
    ids=["computed weights", "divisor", "places"],
)
def test_what_nothing_can_quantize_has_a_way_out_too(
    function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], wanted: ways_out.WayOut
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        on.compile(Function(function).eval(), inputs, calibration=[inputs])
    assert caught.value.hint == wanted.hint


def test_the_list_of_operators_says_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "aten.topk.default"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "aten.topk.default has no lowering: it sorts" in text and "torch.argmax" in text
