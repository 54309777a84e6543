"""DecomposeLstm: unrolls an LSTM into the operators of its steps, which can be quantized.

Before:  y, h, c = lstm(x, [h0, c0], weights)
After:   g = linear(x, w_ih, b_ih); per step: i, f, n, o = g + linear(h, w_hh, b_hh)
         c = sigmoid(f) * c + sigmoid(i) * tanh(n); h = sigmoid(o) * tanh(c)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import value_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose._recurrent import State, Weights, decompose, part

aten = torch.ops.aten


def decompose_lstm(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten layers."""
    return decompose(model, {"aten.lstm.input": _cell, "aten.lstm_cell.default": _cell})


def _cell(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    """Return the next state."""
    h, c = state
    size = value_of(gates).shape[-1] // 4
    gates = call(aten.add.Tensor, gates, call(aten.linear.default, h, weights.states, weights.state_bias))
    opened = call(aten.sigmoid.default, part(call, gates, 0, size, 2))
    new = call(aten.tanh.default, part(call, gates, 2, size))
    output = call(aten.sigmoid.default, part(call, gates, 3, size))
    added = call(aten.mul.Tensor, part(call, opened, 0, size), new)
    cells = call(aten.add.Tensor, call(aten.mul.Tensor, part(call, opened, 1, size), c), added)
    result = call(aten.mul.Tensor, output, call(aten.tanh.default, cells))
    if weights.projection is not None:
        result = call(aten.linear.default, result, weights.projection, None)
    return result, cells
