"""An LSTM as plain operators, step by step; PyTorch's own decomposition calls a CPU library instead."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional

Tensors = Sequence[torch.Tensor]


def lstm(
    x: torch.Tensor, states: Tensors, parameters: Tensors, has_biases: bool, layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """What `aten.lstm.input` computes in evaluation: all outputs, last hidden states, last cell states."""
    steps = list((x.transpose(0, 1) if batch_first else x).unbind(0))
    directions = 2 if bidirectional else 1
    width = 4 if has_biases else 2
    hidden, cells = [], []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            at = layer * directions + direction
            weights = parameters[at * width : (at + 1) * width]
            made, h, c = _direction(steps[:: -1 if direction else 1], states[0][at], states[1][at], weights)
            results.append(made[:: -1 if direction else 1])
            hidden.append(h)
            cells.append(c)
        steps = results[0] if directions == 1 else [torch.cat(pair, -1) for pair in zip(*results, strict=True)]
    return torch.stack(steps, 1 if batch_first else 0), torch.stack(hidden), torch.stack(cells)


def _direction(
    steps: list[torch.Tensor], h: torch.Tensor, c: torch.Tensor, weights: Tensors
) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
    w_input, w_hidden = weights[0], weights[1]
    b_input, b_hidden = (weights[2], weights[3]) if len(weights) > 2 else (None, None)
    made = []
    for step in steps:
        gates = functional.linear(step, w_input, b_input) + functional.linear(h, w_hidden, b_hidden)
        i, f, g, o = gates.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        made.append(h)
    return made, h, c
