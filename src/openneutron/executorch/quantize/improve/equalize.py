"""EqualizeChannels: balances the channel ranges of activations between layers (Nagel et al. 2019; SmoothQuant, Xiao 2023).

Before:  y = w2 * relu(w1 * x + b1)
After:   y = (w2 s) * relu((w1 / s) * x + b1 / s)

In float both are the same for any s > 0 for each channel, so that one scale for a tensor serves all of its channels. What
shares s is a group: values that layers write and layers alone read, with operators between that keep channels and scale with
them, joins included.

    conv ──► prelu ──► add ──► max pool ──► conv
    conv ───────────────┘

s is the root of a channel's range over the largest weight that reads it. Where only depth-wise layers read, whose weights
have a scale for each channel anyway, s is the range. A clamp between 0 and 6 needs one end for all channels: those that reach
it keep their scale, and the others stay below it. Layers with one scale for all of their weights have `equalize_weights`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import arguments, operator_name, shape_of, value_of
from openneutron.executorch.quantize.improve.channel_operators import CLAMPS, MEAN, clamp_end, flattens, keeps_channels
from openneutron.executorch.quantize.passes._layers import Layer, bias_of, give_constants, layer_of, weight_of

SAMPLES: Final = 32  # enough for a stable maximum of each channel
# A nearly unused channel would otherwise get a scale beyond what the weights of its neighbours leave room for.
_LEAST: Final = 1e-3
_REACHED: Final = 0.999  # of a clamp's end
_HEADROOM: Final = 1.5  # of a channel below a clamp's end: other samples have larger values than those measured

_ELEMENTWISE: Final = frozenset(
    f"aten.{name}.default" for name in ("relu", "relu_", "leaky_relu", "leaky_relu_", "dropout", "clone", "contiguous")
)
_IMAGES: Final = frozenset(
    {"aten.max_pool2d.default", "aten.avg_pool2d.default", "aten.avg_pool1d.default", "aten.adaptive_avg_pool2d.default",
     "aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"}
)  # fmt: skip
_PRELU: Final = "aten.prelu.default"
_PADS: Final = frozenset({"aten.pad.default", "aten.constant_pad_nd.default"})
_JOINS: Final = frozenset({"aten.add.Tensor", "aten.add_.Tensor", "aten.sub.Tensor"})
_FUSED: Final = CLAMPS | {"aten.relu.default", "aten.relu_.default"}


@dataclass(eq=False)
class Group:
    """Values that share the scales of their channels, which are dimension `axis`, and the layers that write and read them."""

    axis: int
    values: dict[Node, int] = field(
        default_factory=dict
    )  # elements of a channel side by side: those of a flattened image
    writers: list[Layer] = field(default_factory=list)
    readers: list[tuple[Layer, int]] = field(default_factory=list)
    ends: set[float] = field(default_factory=set)  # of clamps


def equalize(model: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> int:
    """Equalize in place, with ranges measured on some samples; returns how many groups of layers changed.

    Batch norms must already be folded.

    Example:
        >>> fold_batch_norm(module)
        >>> equalize(module, [(image,)])
        18
    """
    groups = find_groups(model)
    if not groups:
        return 0
    ranges = _Ranges(model, {node: group.axis for group in groups for node in group.values})
    with torch.no_grad():
        for batch in batches[:SAMPLES]:
            ranges.run(*batch)
    weights: dict[Node, torch.Tensor] = {}
    biases: dict[Node, torch.Tensor] = {}
    layers = {layer.node: layer for group in groups for layer in (*group.writers, *(one for one, _ in group.readers))}
    for layer in layers.values():
        weights[layer.node] = layer.blocks(weight_of(model, layer)).double()
        bias = bias_of(model, layer)
        if bias is not None:
            biases[layer.node] = bias.double()
    for group in groups:
        _apply(group, _scale(group, ranges.found, weights), weights, biases)
    for layer in layers.values():
        like, bias = weight_of(model, layer), biases.get(layer.node)
        new = layer.from_blocks(weights[layer.node], like).to(like.dtype)
        give_constants(model, layer, new, None if bias is None else bias.to(like.dtype))
    model.graph.eliminate_dead_code()
    model.recompile()
    return len(groups)


def find_groups(model: GraphModule) -> list[Group]:
    """Return every group whose channels may be scaled, in the order of the graph."""
    layers = {node: layer for node in model.graph.nodes if (layer := layer_of(node)) is not None}
    shared: dict[Any, int] = {}
    for layer in layers.values():
        shared[layer.weight.target] = shared.get(layer.weight.target, 0) + 1
    own = {node: layer for node, layer in layers.items() if shared[layer.weight.target] == 1}
    found: list[Group] = []
    seen: set[Node] = set()
    for node, layer in own.items():
        if node in seen:
            continue
        group = Group(layer.channel_axis % _rank(node))
        whole = _collect(group, node, own)
        seen |= group.values.keys()
        if whole and group.readers and len(group.ends) < 2:
            found.append(group)
    return found


def _collect(group: Group, start: Node, layers: dict[Node, Layer]) -> bool:
    """Add to a group all that shares the channels of a layer's result; False where something else reads or writes them."""
    waiting = [(start, 1)]
    channels = _size(start, group.axis)
    while waiting:
        node, repeat = waiting.pop()
        if node in group.values:
            if group.values[node] != repeat:
                return False
            continue
        if _size(node, group.axis) != channels * repeat:
            return False
        group.values[node] = repeat
        layer = layers.get(node)
        if layer is not None:
            if layer.channel_axis % _rank(node) != group.axis:
                return False
            group.writers.append(layer)
        else:
            before = _inputs(node, group)
            if not before:
                return False
            waiting += [(one, 1 if flattens(node) else repeat) for one in before]
        for reader in node.users:
            layer = layers.get(reader)
            if layer is not None and reader.all_input_nodes.count(node) == 1 and reader.args[0] is node:
                if layer.channel_axis % _rank(node) != group.axis:
                    return False
                group.readers.append((layer, repeat))
            elif _inputs(reader, group):
                waiting.append((reader, _size(reader, 1) // channels if flattens(reader) else repeat))
            else:
                return False
    return True


def _inputs(node: Node, group: Group) -> tuple[Node, ...]:
    """Return the inputs that share their channels with an operator's result; none if it is no such operator."""
    name, first = operator_name(node), node.args[0] if node.args else None
    if node.op != "call_function" or not isinstance(first, Node) or value_of(first) is None:
        return ()
    if name in _JOINS:
        other = node.args[1]
        same = isinstance(other, Node) and other is not first and shape_of(first) == shape_of(other)
        return (first, other) if same else ()  # type: ignore[return-value]
    if name in CLAMPS:
        end = clamp_end(node)
        if end is None:
            return ()
        group.ends.add(end)
        return (first,)
    image = group.axis == 1 and _rank(first) > 2
    if name == _PRELU:
        fits = group.axis == 1 or _size(node.args[1], 0) == 1  # type: ignore[arg-type]
        return (first,) if fits else ()
    if name in _PADS:
        given = arguments(node)
        zero = given.get("mode", "constant") == "constant" and not given.get("value")
        return (first,) if image and zero and len(given["pad"]) <= 2 * (_rank(first) - 2) else ()
    known = name in _ELEMENTWISE or (image and (name in _IMAGES or (name == MEAN and keeps_channels(node))))
    return (first,) if known or (group.axis == 1 and flattens(node)) else ()


class _Ranges(Interpreter):
    """Records the largest magnitude of each channel of some nodes, by the dimension of their channels."""

    def __init__(self, model: GraphModule, axes: dict[Node, int]) -> None:
        super().__init__(model)
        self._axes = axes
        self.found: dict[Node, torch.Tensor] = {}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self._axes:
            others = [at for at in range(value.dim()) if at != self._axes[n]]
            most = value.abs().double().amax(others)
            self.found[n] = torch.maximum(self.found[n], most) if n in self.found else most
        return value


def _scale(group: Group, ranges: dict[Node, torch.Tensor], weights: dict[Node, torch.Tensor]) -> torch.Tensor:
    """Return the divisor of each channel; 1 for one that is not used."""
    stored = [node for node in group.values if not _is_fused(node)]
    channels = weights[group.writers[0].node].shape
    count = channels[0] * channels[1]
    span = torch.stack([ranges[node].reshape(count, -1).amax(1) for node in stored]).amax(0)
    read = torch.zeros(count, dtype=torch.float64)
    for layer, _ in group.readers:
        blocks = weights[layer.node]
        if blocks.shape[1] > 1 or blocks.shape[2] > 1:
            read = torch.maximum(read, blocks.abs().amax((1, 3)).reshape(count, -1).amax(1))
    free = bool((read == 0).all())  # every reader is depth-wise
    used = (span > 0) & ((read > 0) | free)
    span = span.clamp(min=float(span.max()) * _LEAST)
    scale = span if free else (span / read.clamp(min=float(read.max()) * _LEAST)).sqrt()
    scale = torch.where(used, scale, 1.0)
    if not bool(used.any()):
        return torch.ones(count, dtype=torch.float64)
    if not group.ends:
        return torch.where(used, scale / scale[used].log().mean().exp(), 1.0)
    (end,) = group.ends
    # No channel is beyond the end.
    scale = torch.where(used, scale * ((span / scale)[used].max() * _HEADROOM / end), 1.0)
    return torch.where(span < end * _REACHED, scale, 1.0)


def _is_fused(node: Node) -> bool:
    """Return whether a value is never stored: the activation that alone reads it is fused into its layer."""
    return layer_of(node) is not None and all(operator_name(one) in _FUSED for one in node.users)


def _apply(
    group: Group, scale: torch.Tensor, weights: dict[Node, torch.Tensor], biases: dict[Node, torch.Tensor]
) -> None:
    for writer in group.writers:
        block = weights[writer.node]
        weights[writer.node] = block / scale.reshape(*block.shape[:2], 1, 1)
        if writer.node in biases:
            biases[writer.node] = biases[writer.node] / scale
    for reader, repeat in group.readers:
        block = weights[reader.node]
        weights[reader.node] = block * scale.repeat_interleave(repeat).reshape(block.shape[0], 1, block.shape[2], 1)


def _size(node: Node, axis: int) -> int:
    shape = shape_of(node)
    return int(shape[axis]) if axis < len(shape) else 0


def _rank(node: Node) -> int:
    return len(shape_of(node))
