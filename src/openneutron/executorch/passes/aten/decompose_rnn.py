"""DecomposeRnn: a plain recurrent layer unrolled into the operators of its steps, which can be quantized.

Before:  y, h = rnn_tanh(x, h0, weights)
After:   g = linear(x, w_ih, b_ih); per step: h = tanh(g + linear(h, w_hh, b_hh))
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.passes.aten._insert import Insert
from openneutron.executorch.passes.aten._recurrent import (
    Cell,
    Recurrent,
    State,
    Weights,
    is_unrollable,
    unroll,
    weights_of,
)

aten = torch.ops.aten


def decompose_rnn(model: GraphModule) -> int:
    """Rewrite in place; returns how many layers went."""
    count = 0
    for node in list(model.graph.nodes):
        cell = _CELLS.get(operator_name(node))
        if cell is None:
            continue
        given = arguments(node)
        if not is_unrollable(node, dropout=given["dropout"], training=given["train"]):
            continue
        weights = weights_of(given["params"], has_biases=given["has_biases"])
        directions = 2 if given["bidirectional"] else 1
        unroll(model, Recurrent(node, given["input"], (given["hx"],), weights, directions, given["batch_first"]), cell)
        count += 1
    return count


def _sum(call: Insert, gates: Node, state: State, weights: Weights) -> Node:
    """What a step's activation reads; a state of None is zero."""
    h = state[0]
    from_state = weights.state_bias if h is None else call(aten.linear.default, h, weights.states, weights.state_bias)
    return gates if from_state is None else call(aten.add.Tensor, gates, from_state)


def _tanh(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    return (call(aten.tanh.default, _sum(call, gates, state, weights)),)


def _relu(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    return (call(aten.relu.default, _sum(call, gates, state, weights)),)


_CELLS: dict[str, Cell] = {"aten.rnn_tanh.input": _tanh, "aten.rnn_relu.input": _relu}
