"""DecomposeGru: a GRU unrolled into the operators of its steps, which can be quantized.

Before:  y, h = gru(x, h0, weights)
After:   g = linear(x, w_ih, b_ih); per step: s = linear(h, w_hh, b_hh)
         r, z = sigmoid(g_rz + s_rz); n = tanh(g_n + r * s_n); h = n + z * (h - n)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import value_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._recurrent import State, Weights, decompose, part

aten = torch.ops.aten


def decompose_gru(model: GraphModule) -> int:
    """Rewrite in place; returns how many layers went."""
    return decompose(model, {"aten.gru.input": _cell})


def _cell(call: Insert, gates: Node, state: State, weights: Weights) -> State:
    """One step; a state of None is zero."""
    h = state[0]
    size = value_of(gates).shape[-1] // 3
    from_state = weights.state_bias if h is None else call(aten.linear.default, h, weights.states, weights.state_bias)
    both, new = part(call, gates, 0, size, 2), part(call, gates, 2, size)
    if from_state is not None:
        both = call(aten.add.Tensor, both, part(call, from_state, 0, size, 2))
    opened = call(aten.sigmoid.default, both)
    reset, update = part(call, opened, 0, size), part(call, opened, 1, size)
    if from_state is not None:
        new = call(aten.add.Tensor, new, call(aten.mul.Tensor, reset, part(call, from_state, 2, size)))
    new = call(aten.tanh.default, new)
    if h is None:
        return (call(aten.sub.Tensor, new, call(aten.mul.Tensor, update, new)),)
    kept = call(aten.mul.Tensor, update, call(aten.sub.Tensor, h, new))
    return (call(aten.add.Tensor, new, kept),)
