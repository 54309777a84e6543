"""One-hot rows and rows at run-time positions are looked up on the NPU, and come out exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import openneutron as on
from tests.executorch.harness import Function, reasons

ROWS = torch.linspace(-1, 1, 90).reshape(2, 9, 5)
PLACES = torch.tensor([[0, 8, 3, 3], [7, 1, 0, 2]])


def run(function: Callable[..., Any], *inputs: torch.Tensor) -> tuple[torch.Tensor, list[str]]:
    """The result of a function on the NPU, and what it left to the CPU."""
    program = on.compile(Function(function).eval(), inputs, calibration=[inputs], quality="plain")
    left = [
        node.operator for node in program.verdicts if not node.delegated and node.code not in ("border", "other_type")
    ]
    (got,) = program.run(*inputs)
    return got, left


def test_one_hot_rows_are_zeros_and_ones() -> None:
    """The range is known: an observer could cut off the ones, which are few."""

    def choose(x: torch.Tensor) -> torch.Tensor:
        return functional.one_hot(x.argmax(-1), 5).float() * x.amax(-1, keepdim=True)

    x = ROWS.flip(-1) + 2
    got, left = run(choose, x)
    assert not left
    assert float((got - choose(x)).abs().max()) < 0.02


@pytest.mark.parametrize("sets", [1, 2])
def test_rows_gathered_by_positions(sets: int) -> None:
    def gather(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.gather(x.relu(), 1, places.unsqueeze(-1).expand(-1, -1, 5))

    inputs = ROWS[:sets], PLACES[:sets]
    got, left = run(gather, *inputs)
    assert not left
    assert float((got - gather(*inputs)).abs().max()) < 0.01


def test_values_gathered_along_the_last_dimension() -> None:
    def gather(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return torch.gather(x.relu(), -1, places)

    inputs = ROWS[:, :, 0], PLACES
    got, left = run(gather, *inputs)
    assert not left
    assert float((got - gather(*inputs)).abs().max()) < 0.01


def test_a_place_for_each_element_stays() -> None:
    places = (torch.arange(40) % 9).reshape(2, 4, 5)
    assert "no_lowering" in reasons(lambda x, i: torch.gather(x.relu(), 1, i) * 2, (ROWS, places))
