"""RoundGroups: rounds 4-bit weights one input after the other, and lets the inputs that follow make up for the error.

The method is GPTQ (Frantar et al. 2022) with the steps of the groups fixed beforehand: those with the least squared error,
weighted by the size of the inputs. With H the second moments of a layer's inputs and U the upper Cholesky factor of its
inverse, the largest inputs first:

    for each input j:  q = round(w[j] / step);  e = (w[j] - q step) / U[j, j];  w[k] -= e U[j, k]  for all k > j

Then each weight is rounded again for what all the others left, twice (coordinate descent): where GPTQ comes last, nobody is
left to make up for an error.

A thousand tokens tell little about the moments of hundreds of inputs, and weights that are fitted to chance get worse than
rounded ones. So moments between two inputs shrink towards zero by what chance gives them (Ledoit and Wolf 2004, with the
diagonal as target).

The layers get float weights that lie on the 4-bit grid, and the quantizer keeps their quotients. Moments are those of the float
network on the calibration data, a state carried from sample to sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.four_bit import fits
from openneutron.executorch.quantize.improve.rounding import LARGEST
from openneutron.executorch.quantize.passes._layers import LINEAR, Layer, bias_of, give_constants, layer_of, weight_of
from openneutron.executorch.quantize.states import restore, states_of
from openneutron.litert.grouped_weights import group_steps

SAMPLES: Final = 2048  # tokens; more gain little
DAMPING: Final = 0.01  # fraction of the mean moment added to all, as in GPTQ: inputs that are always zero need some
ALIKE: Final = 4.0  # tokens of a text that count as one: they depend on each other; three decoders did best with it
SWEEPS: Final = 2  # of the second rounding; a third gains nothing
_BLOCK: Final = 64  # inputs whose errors are handed on together: many small products take most of the time
_MOST: Final = 7  # the largest quotient of 4 bits, either sign


@dataclass
class Moments:
    """Sums over tokens of what the rounding needs to know about a layer's inputs."""

    products: torch.Tensor
    count: int = 0
    norms: float = 0.0  # squared twice: of whole tokens, and of single inputs
    fourths: float = 0.0

    @classmethod
    def of(cls, rows: torch.Tensor) -> Moments:
        """Return the moments of tokens [tokens, inputs]."""
        made = cls(torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64))
        made.add(rows)
        return made

    def add(self, rows: torch.Tensor) -> None:
        """Add tokens [tokens, inputs]."""
        rows = rows.double()
        squares = rows.square()
        self.products += rows.T @ rows
        self.count += len(rows)
        self.norms += float(squares.sum(1).square().sum())
        self.fourths += float(squares.square().sum())

    def shrunk(self) -> torch.Tensor:
        """Return the mean products, those of two inputs nearer to zero by what chance alone gives them."""
        mean = self.products / max(self.count, 1)
        own = torch.diag(mean.diagonal())
        between = float((mean - own).square().sum())
        chance = (self.norms - self.fourths) / max(self.count, 1) - between
        share = min(1.0, ALIKE * chance / max(self.count, 1) / between) if between > 0 else 0.0
        return own + (1.0 - max(share, 0.0)) * (mean - own)


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
    moments = _Moments(model, {_source(node) for node in layers})
    with torch.no_grad():
        for batch in batches[:SAMPLES]:
            moments.run(*batch)
    restore(model, states)
    for node, layer in layers.items():
        weight = weight_of(model, layer)
        rounded = round_rows(weight, moments.found[_source(node)].shrunk(), group_size, least_scale)
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


def _source(node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)
    return source


class _Moments(Interpreter):
    """Sums up the second moments of some values, each of which one or more linear layers read."""

    def __init__(self, model: GraphModule, sources: set[Node]) -> None:
        super().__init__(model)
        self._sources = sources
        self.found: dict[Node, Moments] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self._sources:
            rows = value.reshape(-1, value.shape[-1])
            if n in self.found:
                self.found[n].add(rows)
            else:
                self.found[n] = Moments.of(rows)
        return value


def round_rows(weight: torch.Tensor, moments: torch.Tensor, group_size: int, least_scale: float) -> torch.Tensor:
    """Return weights [channels, inputs] on the grid of their groups that change the layer's results little."""
    own = moments.diagonal().float()
    known = own if float(own.max()) > 0 else torch.ones_like(own)
    steps = group_steps(weight.detach().float().numpy(), group_size, least_scale, known.numpy())
    inputs = weight.shape[1]
    order = torch.argsort(own, descending=True, stable=True)
    step = torch.from_numpy(steps).repeat_interleave(group_size or inputs, 1)[:, order]
    level = float(own.mean())
    damped = moments + DAMPING * (level if level > 0 else 1.0) * torch.eye(inputs, dtype=moments.dtype)
    damped = damped[order][:, order]
    wanted = weight.detach().double()[:, order]
    found = _round_again(wanted, _round_in_order(wanted, damped, step), damped, step)
    return found[:, torch.argsort(order)]


def _nearest(values: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    return (values / step.clamp_min(torch.finfo(step.dtype).tiny)).round().clamp(-_MOST, _MOST) * step


def _round_in_order(wanted: torch.Tensor, moments: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Round one input after the other and hand the error on to those that follow."""
    upper = torch.linalg.cholesky(torch.linalg.inv(moments), upper=True)
    left, found = wanted.clone(), torch.empty_like(wanted)
    for first in range(0, wanted.shape[1], _BLOCK):
        block = slice(first, min(first + _BLOCK, wanted.shape[1]))
        errors = torch.empty_like(left[:, block])
        for at in range(block.start, block.stop):
            found[:, at] = _nearest(left[:, at], step[:, at])
            errors[:, at - first] = (left[:, at] - found[:, at]) / upper[at, at]
            left[:, at + 1 : block.stop] -= errors[:, at - first, None] * upper[at, at + 1 : block.stop]
        left[:, block.stop :] -= errors @ upper[block, block.stop :]
    return found


def _round_again(wanted: torch.Tensor, found: torch.Tensor, moments: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Round each weight for the error that all others of its channel make; the result's error only falls."""
    found = found.clone()
    slope = (found - wanted) @ moments
    for first in (at for _ in range(SWEEPS) for at in range(0, wanted.shape[1], _BLOCK)):
        block = slice(first, min(first + _BLOCK, wanted.shape[1]))
        before, inside = found[:, block].clone(), moments[block, block]
        near = slope[:, block].clone()
        for at in range(block.start, block.stop):
            best = _nearest(found[:, at] - near[:, at - first] / moments[at, at], step[:, at])
            near += (best - found[:, at])[:, None] * inside[at - first]
            found[:, at] = best
        slope += (found[:, block] - before) @ moments[block]
    return found
