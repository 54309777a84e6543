"""Unrolling of recurrent layers: the code common to GRU, LSTM and plain RNN layers.

Every layer and direction multiplies the whole sequence by its input weights at once, then walks over the steps. All steps
have the same operators, the first one too, so that the compiler can make one loop of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import GETITEM, arguments, note_unrolled, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, Insert, is_zero

aten = torch.ops.aten


@dataclass(frozen=True)
class Weights:
    """Weights of one layer in one direction; `projection` is LSTM's `proj_size` matrix."""

    inputs: Node
    states: Node
    input_bias: Node | None = None
    state_bias: Node | None = None
    projection: Node | None = None


State = tuple[Any, ...]
Cell = Callable[[Insert, Node, State, Weights], State]


@dataclass(frozen=True)
class Recurrent:
    """A recurrent layer as ATen calls it; `initial` has one node per kind of state, [layers * directions, N, H]."""

    node: Node
    x: Node
    initial: tuple[Node, ...]
    weights: tuple[Weights, ...]
    directions: int
    batch_first: bool


def weights_of(flat: Sequence[Node], *, has_biases: bool, projected: bool = False) -> tuple[Weights, ...]:
    """Split the flat list of parameters by layer and direction."""
    count = 2 + 2 * has_biases + projected
    groups = [flat[start : start + count] for start in range(0, len(flat), count)]
    return tuple(
        Weights(
            group[0], group[1], group[2] if has_biases else None, group[3] if has_biases else None,
            group[-1] if projected else None,
        )
        for group in groups
    )  # fmt: skip


def unroll(model: GraphModule, layer: Recurrent, cell: Cell) -> None:
    """Replace the layer's results in place: the sequence of states, then the last state of each kind."""
    note_unrolled(layer.node)
    call = Insert(model, layer.node)
    time = 1 if layer.batch_first else 0
    sequence, last = layer.x, []
    ways: list[list[Node]] = []
    for first in range(0, len(layer.weights), layer.directions):
        ways = []
        for direction in range(layer.directions):
            state = tuple(_begin(call, initial, first + direction) for initial in layer.initial)
            made, state = _walk(call, sequence, layer.weights[first + direction], state, cell, time, direction == 1)
            ways.append(made)
            last.append(state)
        # Each direction's states are stacked first: joining the directions step by step would need copies outside the
        # loop.
        sequence = _join(call, [_stack(call, way, time) for way in ways], -1)
    finals = [_stack(call, [state[kind] for state in last], 0) for kind in range(len(layer.initial))]
    _replace(call, layer.node, [sequence, *finals], ways, time)


def _begin(call: Insert, initial: Node, index: int) -> Node:
    """Return the initial state; zeros are a constant, with the scale of later states."""
    if not is_zero(call.model, initial):
        return call(aten.select.int, initial, 0, index)
    with call.model.graph.inserting_before(call.node):
        return add_constant(call.model, "zero_state", torch.zeros(value_of(initial).shape[1:]))


def _walk(
    call: Insert, sequence: Node, weights: Weights, state: State, cell: Cell, time: int, backwards: bool
) -> tuple[list[Node], State]:
    """Unroll one direction; returns the state of every step, in the sequence's order, and the last state."""
    gates = call(aten.linear.default, sequence, weights.inputs, weights.input_bias)
    count = value_of(sequence).shape[time]
    made: list[Any] = [None] * count
    for step in reversed(range(count)) if backwards else range(count):
        call.role = [gates.name, 0]
        for kind, one in enumerate(state):
            one.meta[ROLE_KEY] = (gates.name, "state", kind)
        state = cell(call, call(aten.select.int, gates, time, step), state, weights)
        for kind, one in enumerate(state):
            one.meta[ROLE_KEY] = (gates.name, "state", kind)
        made[step] = state[0]
    call.role = []
    return made, state


def _stack(call: Insert, tensors: list[Node], dim: int) -> Node:
    return _join(call, [call(aten.unsqueeze.default, tensor, dim) for tensor in tensors], dim)


def _join(call: Insert, tensors: list[Node], dim: int) -> Node:
    return tensors[0] if len(tensors) == 1 else call(aten.cat.default, tensors, dim)


def _replace(call: Insert, node: Node, results: list[Node], ways: list[list[Node]], time: int) -> None:
    """Give readers of one step that step's state, of both directions; other readers get the stacked sequence."""
    model = call.model
    for user in list(node.users):
        index = user.args[1]
        for reader in list(user.users) if index == 0 else ():
            if operator_name(reader) == "aten.select.int" and reader.args[1] % value_of(user).dim() == time:
                step = reader.args[2]
                reader.replace_all_uses_with(_join(call, [way[step] for way in ways], -1))
                model.graph.erase_node(reader)
        user.replace_all_uses_with(results[index])
        model.graph.erase_node(user)
    model.graph.erase_node(node)


def is_unrollable(node: Node, *, dropout: float, training: bool) -> bool:
    """Return whether every result is read by index and no dropout acts between the layers."""
    return not (dropout and training) and all(operator_name(user) == GETITEM for user in node.users)


def part(call: Insert, x: Node, index: int, size: int, count: int = 1) -> Node:
    """Return gates `index` to `index + count` from a row of gates, `size` wide each; a vector of biases is sliced likewise."""
    return call(aten.slice.Tensor, x, value_of(x).dim() - 1, index * size, (index + count) * size)


def decompose(model: GraphModule, cells: Mapping[str, Cell]) -> int:
    """Unroll every layer whose operator has a cell in `cells`; returns the number of unrolled layers."""
    count = 0
    for node in list(model.graph.nodes):
        cell = cells.get(operator_name(node))
        if cell is None:
            continue
        given = arguments(node)
        if "w_ih" in given:
            count += _decompose_cell(model, node, given, cell)
            continue
        if not is_unrollable(node, dropout=given["dropout"], training=given["train"]):
            continue
        states = (given["hx"],) if isinstance(given["hx"], Node) else tuple(given["hx"])
        projected = len({value_of(state).shape[-1] for state in states}) > 1
        weights = weights_of(given["params"], has_biases=given["has_biases"], projected=projected)
        directions = 2 if given["bidirectional"] else 1
        unroll(model, Recurrent(node, given["input"], states, weights, directions, given["batch_first"]), cell)
        count += 1
    return count


def _decompose_cell(model: GraphModule, node: Node, given: Mapping[str, Any], cell: Cell) -> int:
    """Decompose a single step that the model itself calls, such as `nn.GRUCell`: the caller keeps its state."""
    several = not isinstance(given["hx"], Node)
    if several and any(operator_name(user) != GETITEM for user in node.users):
        return 0
    call = Insert(model, node)
    state = tuple(given["hx"]) if several else (given["hx"],)
    weights = Weights(given["w_ih"], given["w_hh"], given["b_ih"], given["b_hh"])
    made = cell(call, call(aten.linear.default, given["input"], weights.inputs, weights.input_bias), state, weights)
    for user in list(node.users) if several else ():
        user.replace_all_uses_with(made[user.args[1]])
        model.graph.erase_node(user)
    node.replace_all_uses_with(made[0])
    model.graph.erase_node(node)
    return 1
