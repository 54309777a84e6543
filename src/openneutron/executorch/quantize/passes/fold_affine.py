"""FoldAffine: folds products with constants and sums with constants into the layers beside them.

Before:  y = conv(x, w, b); z = y * s + t               y = hardswish(x) * s + t; z = conv(y, w, b)
After:   z = conv(x, w * s, b * s + t)                  y = hardswish(x) + t / s; z = conv(y, w * s, b)

A sum in front of a layer without padding is folded too. Each product and sum that is left would be stored, rounded to 8 bits.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, Insert, meta_in_place_of, stable_name
from openneutron.executorch.quantize.passes._layers import (
    LINEAR,
    Layer,
    bias_of,
    layer_of,
    weight_of,
)
from openneutron.executorch.upstream.names import is_erased

# Not those in place: other readers of what they change would read it unchanged.
_PRODUCTS: Final = frozenset({"aten.mul.Tensor", "aten.div.Tensor"})
_SUMS: Final = frozenset({"aten.add.Tensor", "aten.sub.Tensor"})


def fold_affine(model: GraphModule) -> int:
    """Fold in place; returns the number of folded products and sums."""
    count = 0
    for node in list(model.graph.nodes):
        count += _fold_into_layer_before(model, node)
    for node in reversed(list(model.graph.nodes)):  # a sum behind a product first
        if not is_erased(node):
            count += _fold_into_layers_behind(model, node)
    return count


def _fold_into_layer_before(model: GraphModule, node: Node) -> int:
    found = _operands(model, node)
    layer = layer_of(found[0]) if found is not None else None
    if found is None or layer is None or len(layer.node.users) > 1 or ROLE_KEY in layer.node.meta:
        return 0
    constant = _by_channel(found[1], layer.node, layer.channel_axis)
    if constant is None:
        return 0
    weight, bias = weight_of(model, layer).double(), bias_of(model, layer)
    if operator_name(node) in _PRODUCTS:
        blocks = layer.blocks(weight)
        weight = layer.from_blocks(blocks * constant.reshape(*blocks.shape[:2], 1, 1), weight)
        shift = None if bias is None else bias.double() * constant
    else:
        shift = constant if bias is None else bias.double() + constant
    _replace(model, node, layer, layer.node.args[0], weight, shift)
    return 1


def _fold_into_layers_behind(model: GraphModule, node: Node) -> int:
    found = _operands(model, node)
    if found is None or found[1].numel() != 1 or ROLE_KEY in node.meta:
        return 0
    x, constant = found[0], float(found[1])
    if operator_name(node) in _SUMS:
        readers = _layers_behind(node)
        if not readers or not all(map(_reads_no_padding, readers)):
            return 0
        for layer in readers:
            weight, bias = weight_of(model, layer).double(), bias_of(model, layer)
            sums = layer.blocks(weight).sum((2, 3)).reshape(-1) * constant
            _replace(model, layer.node, layer, x, weight, sums if bias is None else bias.double() + sums)
        _erase_unread(model, node)
        return 1
    # Behind a product there may be one sum with a constant, which becomes a smaller or a larger one.
    total = next(iter(node.users)) if len(node.users) == 1 else node
    added = _operands(model, total) if operator_name(total) in _SUMS and ROLE_KEY not in total.meta else None
    last = node if added is None or added[0] is not node or added[1].numel() != 1 else total
    readers = _layers_behind(last)
    if not readers or constant == 0.0:
        return 0
    if last is total and added is not None:
        x = Insert(model, total)(torch.ops.aten.add.Tensor, x, float(added[1]) / constant)
    for layer in readers:
        bias = bias_of(model, layer)
        weight = weight_of(model, layer).double() * constant
        _replace(model, layer.node, layer, x, weight, None if bias is None else bias.double())
    _erase_unread(model, *dict.fromkeys((last, node)))
    return 1


def _replace(
    model: GraphModule, node: Node, layer: Layer, x: Any, weight: torch.Tensor, bias: torch.Tensor | None
) -> None:
    """Replace a node by a new layer with these constants; the old layer's may be those of others too."""
    dtype = weight_of(model, layer).dtype
    with model.graph.inserting_before(node):
        constants: list[Node | None] = [add_constant(model, f"_folded_{layer.node.name}_weight", weight.to(dtype))]
        constants.append(
            None if bias is None else add_constant(model, f"_folded_{layer.node.name}_bias", bias.to(dtype))
        )
        made = model.graph.create_node(
            "call_function",
            layer.node.target,
            (x, *constants, *layer.node.args[3:]),
            {name: value for name, value in layer.node.kwargs.items() if name not in ("weight", "bias")},
            name=stable_name(layer.node, "folded"),
        )
    made.meta = meta_in_place_of(layer.node)
    node.replace_all_uses_with(made)
    model.graph.erase_node(node)
    if node is not layer.node:
        model.graph.erase_node(layer.node)


def _erase_unread(model: GraphModule, *nodes: Node) -> None:
    """Erase what nothing reads any more, so that it does not count as a reader of what is in front of it."""
    for node in nodes:
        if not node.users:
            model.graph.erase_node(node)


def _operands(model: GraphModule, node: Node) -> tuple[Node, torch.Tensor] | None:
    """Return the value and the constant that are multiplied or added; quotients and differences have the inverse of it."""
    name = operator_name(node)
    if name not in _PRODUCTS | _SUMS or len(node.args) != 2 or node.kwargs:
        return None
    reads = [one for one in node.args if isinstance(one, Node) and _constant(model, one) is None]
    if len(reads) != 1 or not _is_float(reads[0]) or value_of(node).shape != value_of(reads[0]).shape:
        return None
    at = node.args.index(reads[0])
    constant = _constant(model, node.args[1 - at])
    if constant is None or not bool(constant.isfinite().all()):
        return None
    if "div" in name or "sub" in name:
        if at == 1 or ("div" in name and bool((constant == 0).any())):
            return None
        constant = 1 / constant if "div" in name else -constant
    return reads[0], constant


def _constant(model: GraphModule, value: Any) -> torch.Tensor | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return torch.tensor(float(value), dtype=torch.float64)
    found = tensor_of(model, value) if isinstance(value, Node) else None
    return found.double() if found is not None and found.is_floating_point() else None


def _is_float(node: Node) -> bool:
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def _by_channel(constant: torch.Tensor, node: Node, axis: int) -> torch.Tensor | None:
    """Return a constant for each channel of a value, None where it differs within one."""
    rank, count = value_of(node).dim(), value_of(node).shape[axis]
    if constant.numel() == 1:
        return constant.reshape(1).expand(count)
    shape = (*[1] * (rank - constant.dim()), *constant.shape)
    wanted = [1] * rank
    wanted[axis] = count
    return constant.reshape(count) if list(shape) == wanted else None


def _layers_behind(node: Node) -> list[Layer]:
    """Return the layers that read a value, none where something else reads it too."""
    found = []
    for reader in node.users:
        layer = layer_of(reader)
        alone = layer is not None and reader.args[0] is node and reader.all_input_nodes.count(node) == 1
        if layer is None or not alone or ROLE_KEY in reader.meta:
            return []
        found.append(layer)
    return found


def _reads_no_padding(layer: Layer) -> bool:
    if operator_name(layer.node) == LINEAR:
        return True
    padding = arguments(layer.node).get("padding", 0)
    zero = padding == "valid" or (not isinstance(padding, str) and not any(torch.tensor(padding).reshape(-1).tolist()))
    # Each output of a transposed convolution is the sum of another number of taps.
    return layer.output_axis == 0 and zero
