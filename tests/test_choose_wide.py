"""Operators that remove most noise for their cycles get 16 bits first, conversions counted."""

from __future__ import annotations

import numpy as np

from openneutron.choose_wide import choose_wide
from openneutron.quantize_litert.find_noise import QuantizedTensor

# x -> a -> b -> c, with the noise of each tensor on one output
CHAIN = [
    QuantizedTensor([0], set(), {"a"}, 100),
    QuantizedTensor([1], {"a"}, {"b"}, 100),
    QuantizedTensor([2], {"b"}, {"c"}, 100),
    QuantizedTensor([3], {"c"}, set(), 100),
]
COSTS = {"a": 0.1, "b": 0.1, "c": 0.1}


def choose(noise: list[float], **changed: object) -> list[str]:
    given = {"target": 0.01, "costs": COSTS, "conversion": 0.0, "most": 0.25, **changed}
    return choose_wide(CHAIN, np.array(noise)[:, None], np.zeros(1), **given)  # type: ignore[arg-type]


def test_a_tensor_needs_what_computes_and_what_reads_it() -> None:
    assert sorted(choose([0.001, 0.5, 0.001, 0.001])) == ["a", "b"]
    assert choose([0.001, 0.001, 0.001, 0.5]) == ["c"]
    assert choose([0.5, 0.0, 0.0, 0.0]) == ["a"]


def test_nothing_above_the_cycles_nor_without_need() -> None:
    assert choose([0.001, 0.5, 0.001, 0.001], most=0.15) == []
    assert choose([0.001] * 4) == []
    assert choose([0.5, 0.0, 0.0, 0.0], costs={"b": 0.1, "c": 0.1}) == []


def test_a_conversion_costs_its_elements() -> None:
    noise = [0.0, 0.0, 0.0, 0.5]
    assert choose(noise, conversion=0.001, most=0.25) == ["c"]
    assert choose(noise, conversion=0.002, most=0.25) == []


def test_only_the_share_of_readers_with_8_bits_stays() -> None:
    two = [QuantizedTensor([0], {"a"}, {"b", "c"}, 1)]
    noise = np.array([[0.04]]), np.zeros(1)
    costs = {"a": 0.1, "b": 0.01, "c": 0.5}
    assert sorted(choose_wide(two, *noise, target=0.02, costs=costs, conversion=0.0, most=0.3)) == ["a", "b"]
