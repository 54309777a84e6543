"""FoldBatchNorm: folds the scale and shift of a batch norm in evaluation into the layer before it.

Before:  y = conv(x, w, b); z = batch_norm(y)
After:   z = conv(x, w', b')

A layer whose result has other readers too keeps its weights: the batch norm gets a copy of it. Weights that several layers
share are never changed in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import meta_in_place_of, stable_name

_NORMS = frozenset({"aten.batch_norm.default", "aten._native_batch_norm_legit_no_training.default"})
# Layer → the weights' dimension of output channels.
_LAYERS = {
    "aten.conv1d.default": 0,
    "aten.conv1d.padding": 0,
    "aten.conv2d.default": 0,
    "aten.conv2d.padding": 0,
    "aten.conv3d.default": 0,
    "aten.conv3d.padding": 0,
    "aten.linear.default": 0,
    "aten.conv_transpose1d.default": 1,
    "aten.conv_transpose2d.input": 1,
    "aten.conv_transpose3d.input": 1,
}


def fold_batch_norm(model: GraphModule) -> int:
    """Fold in place; returns the number of folded batch norms."""
    count = 0
    for norm in list(model.graph.nodes):
        if operator_name(norm) not in _NORMS:
            continue
        layer = norm.args[0]
        if not isinstance(layer, Node) or not _foldable(norm, layer):
            continue
        _fold(model, norm, layer)
        count += 1
    if count:
        model.graph.eliminate_dead_code()
        model.recompile()
    return count


def _foldable(norm: Node, layer: Node) -> bool:
    name = operator_name(layer)
    given = arguments(norm)
    if name not in _LAYERS or given.get("training") or given["running_mean"] is None:
        return False
    weight, bias = layer.args[1], layer.args[2] if len(layer.args) > 2 else None
    constant = all(node is None or (isinstance(node, Node) and node.op == "get_attr") for node in (weight, bias))
    # A linear layer acts on the last dimension, a batch norm on the second.
    return constant and (name != "aten.linear.default" or value_of(layer).dim() == 2)


def _fold(model: GraphModule, norm: Node, layer: Node) -> None:
    given = arguments(norm)
    mean, variance = _tensor(model, given["running_mean"]), _tensor(model, given["running_var"])
    scale = torch.rsqrt(variance.double() + given["eps"])
    if given["weight"] is not None:
        scale = scale * _tensor(model, given["weight"]).double()
    shift = -mean.double() * scale
    if given["bias"] is not None:
        shift = shift + _tensor(model, given["bias"]).double()
    weight = _tensor(model, layer.args[1])
    axis = _LAYERS[operator_name(layer)]
    bias = _tensor(model, layer.args[2]).double() if len(layer.args) > 2 and layer.args[2] is not None else 0.0
    # A transposed convolution stores, per group, rows for its inputs and columns for its outputs: [groups, inputs,
    # outputs, …].
    groups = arguments(layer).get("groups", 1) if axis == 1 else 1
    parts = weight.double().reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    view = [groups, *[1] * (weight.dim())]
    view[axis + 1] = -1
    new_weight = (parts * scale.reshape(view)).reshape(weight.shape).to(weight.dtype)
    new_bias = (bias * scale + shift).to(weight.dtype)
    with model.graph.inserting_before(norm):
        weight_node = add_constant(model, f"_folded_{layer.name}_weight", new_weight)
        bias_node = add_constant(model, f"_folded_{layer.name}_bias", new_bias)
        folded = model.graph.create_node(
            "call_function", layer.target, (layer.args[0], weight_node, bias_node, *layer.args[3:]), dict(layer.kwargs),
            name=stable_name(layer, "folded"),
        )  # fmt: skip
    folded.meta = meta_in_place_of(layer)
    if operator_name(norm) == "aten._native_batch_norm_legit_no_training.default":
        for user in list(norm.users):
            user.replace_all_uses_with(folded)
            model.graph.erase_node(user)
    else:
        norm.replace_all_uses_with(folded)
    model.graph.erase_node(norm)


def _tensor(model: GraphModule, node: Any) -> torch.Tensor:
    found = tensor_of(model, node)
    assert found is not None
    return found
