"""Layers that get 16 bits: those that remove most noise for their cycles, closed over who computes and reads a tensor."""

from __future__ import annotations

import numpy as np
from torch.fx import Graph, Node

from openneutron.executorch.quality.tensors import Noise, QuantizedTensor
from openneutron.executorch.quality.widen import choose_wide


def chain(count: int) -> tuple[list[Node], list[QuantizedTensor]]:
    """Layers in a row with a tensor before the first, between two each, and behind the last."""
    graph = Graph()
    layers = [graph.call_function(print, (), name=f"layer_{at}") for at in range(count)]
    ends = [(layers[at - 1 : at] if at else [], layers[at : at + 1]) for at in range(count + 1)]
    return layers, [QuantizedTensor(set(), set(makers), set(readers)) for makers, readers in ends]


def noise_of(*powers: float, floor: float = 0.0) -> Noise:
    return Noise(np.array(powers).reshape(-1, 1), np.array([floor]))


def chosen(count: int, noise: Noise, **more: object) -> list[str]:
    layers, tensors = chain(count)
    given = {"target": 0.01, "costs": dict.fromkeys(layers, 0.1), "most": 1.0, "able": lambda node: True, **more}
    return [one.name for one in choose_wide(tensors, noise, **given)]  # type: ignore[arg-type]


def test_nothing_is_chosen_where_the_noise_is_low() -> None:
    assert chosen(3, noise_of(0.001, 0.001, 0.001, 0.001)) == []


def test_maker_and_reader_of_the_noisiest_tensor() -> None:
    assert sorted(chosen(3, noise_of(0.001, 0.001, 0.5, 0.001))) == ["layer_1", "layer_2"]


def test_the_last_layer_alone_where_the_output_is_noisy() -> None:
    assert chosen(3, noise_of(0.001, 0.001, 0.001, 0.5)) == ["layer_2"]


def test_cycles_bound_the_choice() -> None:
    assert chosen(3, noise_of(0.1, 0.1, 0.5, 0.1), most=0.15) == ["layer_0"]
    assert chosen(3, noise_of(0.1, 0.1, 0.5, 0.1), most=0.05) == []


def test_layers_that_cannot_are_left_out() -> None:
    assert chosen(3, noise_of(0.0, 0.0, 0.5, 0.0), able=lambda node: node.name != "layer_2") == []


def test_what_weights_lose_is_not_chased() -> None:
    assert len(chosen(3, noise_of(0.1, 0.1, 0.1, 0.1, floor=5.0))) <= 3


def test_one_reader_of_a_stream_can_be_enough() -> None:
    layers, tensors = chain(2)
    other = Graph().call_function(print, (), name="expensive")
    tensors[1].readers.add(other)
    noise = noise_of(0.0, 0.02, 0.0)
    costs = {**dict.fromkeys(layers, 0.01), other: 0.9}
    found = choose_wide(tensors, noise, target=0.0101, costs=costs, most=0.2, able=lambda node: True)
    assert [one.name for one in found] == ["layer_0", "layer_1"]
