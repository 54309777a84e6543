"""DecomposeGru: unrolls a GRU into the operators of its steps, which can be quantized.

Before:  y, h = gru(x, h0, weights)
After:   g = linear(x, w_ih, b_ih); per step: s = linear(h, w_hh, b_hh)
         r, z = sigmoid(g_rz + s_rz); n = tanh(g_n + r * s_n); h = n + z * (h - n)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import value_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose._recurrent import State, Weights, decompose, part

aten = torch.ops.aten


def decompose_gru(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten layers."""
    return decompose(model, {"aten.gru.input": _cell, "aten.gru_cell.default": _cell})


def _cell(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    """Return the next state."""
    h = state[0]
    size = value_of(gates).shape[-1] // 3
    from_state = call(aten.linear.default, h, weights.states, weights.state_bias)
    both = call(aten.add.Tensor, part(call, gates, 0, size, 2), part(call, from_state, 0, size, 2))
    opened = call(aten.sigmoid.default, both)
    reset, update = part(call, opened, 0, size), part(call, opened, 1, size)
    new = call(aten.mul.Tensor, reset, part(call, from_state, 2, size))
    new = call(aten.tanh.default, call(aten.add.Tensor, part(call, gates, 2, size), new))
    kept = call(aten.mul.Tensor, update, call(aten.sub.Tensor, h, new))
    return (call(aten.add.Tensor, new, kept),)
