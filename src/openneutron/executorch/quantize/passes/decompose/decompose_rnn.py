"""DecomposeRnn: unrolls a plain recurrent layer into the operators of its steps, which can be quantized.

Before:  y, h = rnn_tanh(x, h0, weights)
After:   g = linear(x, w_ih, b_ih); per step: h = tanh(g + linear(h, w_hh, b_hh))
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose._recurrent import Cell, State, Weights, decompose

aten = torch.ops.aten


def decompose_rnn(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten layers."""
    return decompose(model, _CELLS)


def _sum(call: Insert, gates: Node, state: State, weights: Weights) -> Node:
    """Return the input of a step's activation."""
    return call(aten.add.Tensor, gates, call(aten.linear.default, state[0], weights.states, weights.state_bias))


def _tanh(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    return (call(aten.tanh.default, _sum(call, gates, state, weights)),)


def _relu(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    return (call(aten.relu.default, _sum(call, gates, state, weights)),)


_CELLS: dict[str, Cell] = {
    "aten.rnn_tanh.input": _tanh, "aten.rnn_tanh_cell.default": _tanh,
    "aten.rnn_relu.input": _relu, "aten.rnn_relu_cell.default": _relu,
}  # fmt: skip
