"""CentreChannels: takes the mean of each channel out of values that layers alone read; the biases behind take it.

Before:  y = w2 * (w1 * x + b1) + b2
After:   y = w2 * (w1 * x + (b1 - m)) + (b2 + w2 * m)

Where channels differ in their mean more than they vary, as behind a batch norm without an activation, most steps of a tensor's
scale lie between the channels. In float both are the same. Values may pass operators that keep a constant added to a channel:
additions, pools, means of images, resizing.

    conv ──► add ──► conv 1 × 1             m of the sum is the sum of both m
    conv ────┘  └──► max pool ──► conv 1 × 1

A layer that pads its input with zeros reads no shifted value: the padding would have to be shifted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.fx import GraphModule, Interpreter, Node

from openneutron.executorch.fx import arguments, operator_name, shape_of, value_of
from openneutron.executorch.quantize.improve.channel_operators import MEAN, flattens, keeps_channels
from openneutron.executorch.quantize.passes._layers import Layer, bias_of, give_constants, layer_of, weight_of
from openneutron.executorch.quantize.states import restore, states_of

SAMPLES: Final = 8  # thousands of positions: the mean need not be exact
_KEEPING: Final = frozenset(
    f"aten.{name}.default" for name in ("dropout", "clone", "contiguous", "adaptive_avg_pool2d", "max_pool2d")
) | {"aten.upsample_nearest2d.vec", "aten.upsample_bilinear2d.vec"}
_AVERAGE: Final = "aten.avg_pool2d.default"
_SIGNS: Final = {"aten.add.Tensor": 1.0, "aten.sub.Tensor": -1.0}  # of the second operand


def centre(model: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> int:
    """Centre in place, with means measured on some samples; returns how many layers' results changed.

    Batch norms must already be folded.

    Example:
        >>> fold_batch_norm(module)
        >>> centre(module, [(image,)])
        17
    """
    every = [layer for node in model.graph.nodes if (layer := layer_of(node)) is not None]
    uses = Counter(layer.weight.target for layer in every)
    # Layers with the same weights keep the same biases too: steps of a loop stay equal.
    layers = {layer.node: layer for layer in every if uses[layer.weight.target] == 1}
    writers = _find_writers(model, layers)
    if not writers:
        return 0
    shifts: dict[Node, torch.Tensor] = {}
    states = states_of(model)
    means = _Means(model, writers).of(batches[:SAMPLES])
    restore(model, states)
    for node in model.graph.nodes:
        layer = layers.get(node)
        if layer is None:
            passed = _shift_behind(node, shifts)
            if passed is not None:
                shifts[node] = passed
            continue
        source = node.args[0]
        added = _bias_of_shift(model, layer, shifts[source]) if source in shifts else None
        taken = means.get(node)
        if taken is not None:
            shifts[node] = taken
        if added is not None or taken is not None:
            old, weight = bias_of(model, layer), weight_of(model, layer)
            bias = torch.zeros(_channels(layer), dtype=torch.float64) if old is None else old.double()
            bias = bias + (0.0 if added is None else added) - (0.0 if taken is None else taken)
            give_constants(model, layer, weight, bias.to(weight.dtype))
    model.graph.eliminate_dead_code()
    model.recompile()
    return len(means)


def _find_writers(model: GraphModule, layers: Mapping[Node, Layer]) -> dict[Node, int]:
    """Return the layers whose results may be shifted, with the dimension of their channels."""
    shiftable: set[Node] = set()
    axes: dict[Node, int] = {}  # where a value's channels must be for its readers
    for node in reversed(list(model.graph.nodes)):
        found = {_axis_for(node, user, layers, shiftable, axes) for user in node.users}
        if len(found) == 1 and None not in found:
            shiftable.add(node)
            axes[node] = found.pop()  # type: ignore[assignment]
    return {
        node: axes[node]
        for node, layer in layers.items()
        if node in shiftable and layer.channel_axis % _rank(node) == axes[node]
    }


def _axis_for(
    node: Node, user: Node, layers: Mapping[Node, Layer], shiftable: set[Node], axes: Mapping[Node, int]
) -> int | None:
    """Return the dimension in which a user takes a constant for each channel; None where it takes none."""
    layer = layers.get(user)
    if layer is not None:
        alone = user.args[0] is node and user.all_input_nodes.count(node) == 1
        return layer.channel_axis % _rank(node) if alone and _reads_no_padding(layer) else None
    return axes[user] if user in shiftable and _keeps_shift(node, user) else None


def _reads_no_padding(layer: Layer) -> bool:
    given = arguments(layer.node)
    if "transpose" in operator_name(layer.node):  # its borders have fewer taps
        return False
    padding = given.get("padding", 0)
    return not isinstance(padding, str) and not any(padding if isinstance(padding, (list, tuple)) else [padding])


def _keeps_shift(node: Node, user: Node) -> bool:
    """Return whether a constant added to a channel of a value is added to that of a result."""
    name = operator_name(user)
    if name in _SIGNS:
        return len(user.args) == 2 and not user.kwargs and shape_of(node) == shape_of(user)
    if user.args[0] is not node or value_of(node) is None:
        return False
    if name == _AVERAGE:
        given = arguments(user)
        return not any(given.get("padding") or [0]) and given.get("divisor_override") is None
    image = _rank(node) > 2
    return image and (name in _KEEPING or (name == MEAN and keeps_channels(user)) or flattens(user))


def _shift_behind(node: Node, shifts: Mapping[Node, torch.Tensor]) -> torch.Tensor | None:
    """Return what the shifts of an operator's inputs make of its result."""
    known = [one for one in node.args if isinstance(one, Node) and one in shifts]
    if not known:
        return None
    sign = _SIGNS.get(operator_name(node))
    if sign is not None:
        parts = [shifts[one] * factor for one, factor in zip(node.args, (1.0, sign), strict=True) if one in shifts]
        return torch.stack(parts).sum(0)
    shift = shifts[known[0]]
    return shift.repeat_interleave(shape_of(node)[1] // shift.numel()) if flattens(node) else shift


def _bias_of_shift(model: GraphModule, layer: Layer, shift: torch.Tensor) -> torch.Tensor:
    """Return what a layer makes of a constant in each channel of its input."""
    blocks = layer.blocks(weight_of(model, layer).double())
    return (blocks.sum(3) @ shift.reshape(blocks.shape[0], blocks.shape[2], 1)).reshape(-1)


def _channels(layer: Layer) -> int:
    return int(shape_of(layer.node)[layer.channel_axis])


def _rank(node: Node) -> int:
    return len(shape_of(node))


class _Means(Interpreter):
    """Measures the mean of each channel of some nodes."""

    def __init__(self, model: GraphModule, axes: Mapping[Node, int]) -> None:
        super().__init__(model)
        self._axes = axes
        self._found: dict[Node, list[torch.Tensor]] = {node: [] for node in axes}

    def of(self, batches: Sequence[tuple[torch.Tensor, ...]]) -> dict[Node, torch.Tensor]:
        """Return the means over all batches, of equal weight; what is no number shifts nothing."""
        with torch.no_grad():
            for batch in batches:
                self.run(*(value.clone() for value in batch))  # a model may change its inputs in place
        return {node: torch.stack(each).mean(0).nan_to_num(0.0, 0.0, 0.0) for node, each in self._found.items()}

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n in self._axes:
            axis = self._axes[n]
            self._found[n].append(value.double().mean([dim for dim in range(value.dim()) if dim != axis]))
        return value
