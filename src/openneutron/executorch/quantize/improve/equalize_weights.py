"""EqualizeWeights: balances the weights of neighbouring layers with one weight scale each (Nagel et al. 2019, section 4.1).

Before:  y = w2 * relu(w1 * x + b1)
After:   y = (w2 s) * relu((w1 / s) * x + b1 / s)

In float both are the same for any s > 0 for each channel. s = sqrt(range of w1 / range of w2) gives a channel's weights the
same range on both sides, so that one scale for a tensor serves all of its channels. A clamp from 0 to 6 between the two
would need an end for each channel; it becomes a clamp at the largest of them, which is the same function up to values
that it would have cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.improve.channel_operators import CLAMPS, MEAN, clamp_end, flattens, keeps_channels
from openneutron.executorch.quantize.passes._insert import stable_name
from openneutron.executorch.quantize.passes._layers import Layer, bias_of, give_constants, layer_of, weight_of

# The search ends when scales move by less than 1 %: that no longer changes a range by a step of INT8.
ROUNDS, SETTLED = 50, 0.01
# A nearly unused channel would otherwise get a scale beyond what float arithmetic can represent.
_LEAST, _MOST = 1e-4, 1e4

_SAME = frozenset(
    {"aten.relu.default", "aten.relu_.default", "aten.leaky_relu.default", "aten.leaky_relu_.default",
     "aten.max_pool2d.default", "aten.avg_pool2d.default", "aten.avg_pool1d.default",
     "aten.adaptive_avg_pool2d.default", "aten.dropout.default", "aten.clone.default", "aten.contiguous.default"}
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two layers with only channel-wise operators between them.

    A channel of the first is `repeat` inputs of the second: a flattened image has one for each pixel.
    """

    first: Layer
    second: Layer
    clamps: tuple[Node, ...]
    repeat: int


def equalize_weights(model: GraphModule) -> int:
    """Equalize in place; returns how many pairs of layers changed. Batch norms must already be folded.

    Example:
        >>> fold_batch_norm(module)
        >>> equalize_weights(module)
        18
    """
    pairs = find_pairs(model)
    weights, biases, clamps = _tensors(model, pairs)
    for _ in range(ROUNDS):
        moved = 0.0
        for pair in pairs:
            scale = _scale(pair, weights)
            _apply(pair, scale, weights, biases, clamps)
            moved = max(moved, float((scale.log().abs()).max()))
        if moved < SETTLED:
            break
    for layer in {layer.node: layer for pair in pairs for layer in (pair.first, pair.second)}.values():
        like = weight_of(model, layer)
        bias = biases.get(layer.node)
        new = layer.from_blocks(weights[layer.node], like).to(like.dtype)
        give_constants(model, layer, new, None if bias is None else bias.to(like.dtype))
    for node, ends in clamps.items():
        _replace_clamp(model, node, float(ends.max()))
    if pairs:
        model.graph.eliminate_dead_code()
        model.recompile()
    return len(pairs)


def find_pairs(model: GraphModule) -> list[Pair]:
    """Return every pair whose first layer is read only by the second, in the order of the graph."""
    shared: dict[Any, int] = {}
    layers = [layer for node in model.graph.nodes if (layer := layer_of(node)) is not None]
    for layer in layers:
        shared[layer.weight.target] = shared.get(layer.weight.target, 0) + 1
    found = []
    for layer in layers:
        pair = _pair(layer)
        if pair is not None and shared[layer.weight.target] == 1 and shared[pair.second.weight.target] == 1:
            found.append(pair)
    return found


def _pair(first: Layer) -> Pair | None:
    node, flat = first.node, False
    clamps: list[Node] = []
    while len(node.users) == 1:
        (reader,) = node.users
        if not reader.args or reader.args[0] is not node:
            return None
        second = layer_of(reader)
        if second is not None:
            repeat = _repeat(first, second, flat)
            return Pair(first, second, tuple(clamps), repeat) if repeat else None
        name = operator_name(reader)
        if name in CLAMPS and clamp_end(reader) is not None:
            clamps.append(reader)
        elif first.channel_axis == 1 and not flat and flattens(reader):
            flat = True
        elif name == MEAN and first.channel_axis == 1 and not flat and keeps_channels(reader):
            flat = flat or not arguments(reader)["keepdim"]
        elif name not in _SAME or (flat and "pool" in name):
            return None
        node = reader
    return None


def _repeat(first: Layer, second: Layer, flat: bool) -> int:
    """Return how many inputs of the second layer belong to a channel of the first, 0 if they do not correspond."""
    if (second.channel_axis == 1) == flat and first.channel_axis != second.channel_axis:
        return 0
    if first.channel_axis != second.channel_axis and not flat:
        return 0
    written = int(value_of(first.node).shape[first.channel_axis])
    read = int(value_of(second.node.args[0]).shape[second.channel_axis])  # type: ignore[arg-type]
    return read // written if read % written == 0 else 0


def _tensors(
    model: GraphModule, pairs: list[Pair]
) -> tuple[dict[Node, torch.Tensor], dict[Node, torch.Tensor], dict[Node, torch.Tensor]]:
    """Return weights as blocks, and biases and clamp ends per channel, in double precision."""
    weights: dict[Node, torch.Tensor] = {}
    biases: dict[Node, torch.Tensor] = {}
    clamps: dict[Node, torch.Tensor] = {}
    for pair in pairs:
        for layer in (pair.first, pair.second):
            weights[layer.node] = layer.blocks(weight_of(model, layer)).double()
            bias = bias_of(model, layer)
            if bias is not None:
                biases[layer.node] = bias.double()
        count = weights[pair.first.node].shape[0] * weights[pair.first.node].shape[1]
        for node in pair.clamps:
            clamps[node] = torch.full((count,), clamp_end(node) or 0.0, dtype=torch.float64)
    return weights, biases, clamps


def _scale(pair: Pair, weights: dict[Node, torch.Tensor]) -> torch.Tensor:
    """Return the divisor of each channel between the two layers; 1 for a channel that one of them does not use."""
    written = weights[pair.first.node].abs().amax((2, 3)).reshape(-1)
    read = weights[pair.second.node].abs().amax((1, 3)).reshape(-1)
    read = read.reshape(len(written), pair.repeat).amax(1)
    used = (written > 0) & (read > 0)
    scale = torch.where(used, written / torch.where(used, read, 1.0), 1.0).sqrt()
    return scale.clamp(_LEAST, _MOST)


def _apply(
    pair: Pair,
    scale: torch.Tensor,
    weights: dict[Node, torch.Tensor],
    biases: dict[Node, torch.Tensor],
    clamps: dict[Node, torch.Tensor],
) -> None:
    first, second = weights[pair.first.node], weights[pair.second.node]
    weights[pair.first.node] = first / scale.reshape(*first.shape[:2], 1, 1)
    if pair.first.node in biases:
        biases[pair.first.node] = biases[pair.first.node] / scale
    spread = scale.repeat_interleave(pair.repeat)
    weights[pair.second.node] = second * spread.reshape(second.shape[0], 1, second.shape[2], 1)
    for node in pair.clamps:
        clamps[node] = clamps[node] / scale


def _replace_clamp(model: GraphModule, node: Node, end: float) -> None:
    with model.graph.inserting_before(node):
        args = (node.args[0], 0.0, end)
        made = model.graph.create_node(
            "call_function", torch.ops.aten.clamp.default, args, name=stable_name(node, "clamp")
        )
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)
