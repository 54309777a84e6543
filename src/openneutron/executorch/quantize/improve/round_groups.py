"""RoundGroups: rounds 4-bit weights one input after the other, and lets the inputs that follow make up for the error.

The method is GPTQ (Frantar et al. 2022) with the steps of the groups fixed beforehand. With H the second moments of a layer's
inputs and U the upper Cholesky factor of its inverse:

    for each input j:  q = round(w[j] / step);  e = (w[j] - q step) / U[j, j];  w[k] -= e U[j, k]  for all k > j

The layers get float weights that lie on the 4-bit grid, and the quantizer keeps their quotients. Moments are those of the float
network on the calibration data, a state carried from sample to sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.four_bit import fits
from openneutron.executorch.quantize.improve.layers import LINEAR, Layer, bias_of, give_constants, layer_of, weight_of
from openneutron.executorch.quantize.improve.rounding import LARGEST
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.litert.grouped_weights import group_steps

SAMPLES: Final = 2048  # tokens; with 512 the story decoder's layers fit what they saw
DAMPING: Final = 0.001  # fraction of the mean moment added to all; with 0.01 less of the error is made up for
_MOST: Final = 7  # the largest quotient of 4 bits, either sign


def round_groups(
    model: GraphModule,
    batches: Sequence[tuple[torch.Tensor, ...]],
    group_size: int,
    least_scale: float,
    narrow: Callable[[Node], bool] = lambda node: True,
) -> int:
    """Round the linear layers of a float module that are `narrow` in place; returns how many.

    Example:
        >>> round_groups(module, [(tokens, position)], 32, 2.0**-20)
        36
    """
    layers = {node: layer for node in model.graph.nodes if (layer := _linear(model, node)) is not None and narrow(node)}
    states = states_of(model)
    moments = _Moments(model, set(layers))
    with torch.no_grad():
        for batch in batches[:SAMPLES]:
            moments.run(*batch)
    restore(model, states)
    for node, layer in layers.items():
        weight = weight_of(model, layer)
        rounded = round_rows(weight, moments.found[node], group_size, least_scale)
        give_constants(model, layer, rounded.to(weight.dtype), bias_of(model, layer))
    model.graph.eliminate_dead_code()
    model.recompile()
    return len(layers)


def _linear(model: GraphModule, node: Node) -> Layer | None:
    layer = layer_of(node) if operator_name(node) == LINEAR else None
    if layer is None:
        return None
    shape = weight_of(model, layer).shape
    return layer if fits(shape, 0) and shape[-1] <= LARGEST else None


class _Moments(Interpreter):
    """Sums up the second moments of the inputs of some linear layers."""

    def __init__(self, model: GraphModule, nodes: set[Node]) -> None:
        super().__init__(model)
        self._nodes = nodes
        self.found: dict[Node, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        if n in self._nodes:
            source = n.args[0]
            assert isinstance(source, Node)
            rows = self.env[source].reshape(-1, self.env[source].shape[-1]).double()
            self.found[n] = self.found.get(n, 0.0) + rows.T @ rows
        return super().run_node(n)


def round_rows(weight: torch.Tensor, moments: torch.Tensor, group_size: int, least_scale: float) -> torch.Tensor:
    """Return weights [channels, inputs] on the grid of their groups that change the layer's results little."""
    steps = torch.from_numpy(group_steps(weight.detach().float().numpy(), group_size, least_scale))
    inputs = weight.shape[1]
    step = steps.repeat_interleave(group_size or inputs, 1)[:, :inputs]
    level = float(moments.diagonal().mean())
    damped = moments + DAMPING * (level if level > 0 else 1.0) * torch.eye(inputs, dtype=torch.float64)
    upper = torch.linalg.cholesky(torch.linalg.inv(damped), upper=True)
    left, found = weight.detach().double().clone(), torch.zeros_like(weight, dtype=torch.float64)
    for at in range(inputs):
        unit = step[:, at]
        quotient = torch.where(unit > 0, left[:, at] / torch.where(unit > 0, unit, 1.0), 0.0)
        found[:, at] = quotient.round().clamp(-_MOST, _MOST) * unit
        error = (left[:, at] - found[:, at]) / upper[at, at]
        left[:, at + 1 :] -= error[:, None] * upper[at, at + 1 :]
    return found
