"""LinearNormToConv: in training, turns a linear layer before a batch norm into a convolution over one pixel.

Before:  y = linear(x, w[o, i], b); z = batch_norm(y)
After:   y = conv1d(x[n, i, 1], w[o, i, 1], b); z = batch_norm(y)[n, o]

torchao simulates the folding of a batch norm into a convolution during training, and folds it in convert_pt2e, but not
into a linear layer. The product is the same; the weight becomes a parameter of another shape, trained as before.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import stable_name

_NORM = "aten.batch_norm.default"


def linear_norm_to_conv(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten linear layers."""
    count = 0
    for linear in list(model.graph.nodes):
        if operator_name(linear) == "aten.linear.default" and _feeds_one_norm(linear) and _owns_weight(model, linear):
            _rewrite(model, linear, count)
            count += 1
    return count


def _feeds_one_norm(linear: Node) -> bool:
    users = list(linear.users)
    flat = isinstance(value_of(linear), torch.Tensor) and value_of(linear).dim() == 2
    return flat and len(users) == 1 and operator_name(users[0]) == _NORM and users[0].args[0] is linear


def _owns_weight(model: GraphModule, linear: Node) -> bool:
    """Return whether the weight has no other reader: a shared weight must stay shared, so its layer stays linear."""
    weight = linear.args[1]
    return isinstance(weight, Node) and tensor_of(model, weight) is not None and len(weight.users) == 1


def _rewrite(model: GraphModule, linear: Node, number: int) -> None:
    x, weight = linear.args[0], linear.args[1]
    bias = linear.args[2] if len(linear.args) > 2 else None
    (norm,) = linear.users
    name = f"_normed_linear_{number}_weight"
    old = tensor_of(model, weight)
    assert old is not None
    model.register_parameter(name, torch.nn.Parameter(old.clone().unsqueeze(-1)))
    aten = torch.ops.aten
    with model.graph.inserting_before(linear):
        new_weight = model.graph.get_attr(name)
        new_weight.meta["val"] = value_of(weight).unsqueeze(-1)
        wide = _call(model, aten.unsqueeze.default, (x, -1), linear, value_of(x).unsqueeze(-1))
        layer = _call(model, aten.conv1d.default, (wide, new_weight, bias), linear, value_of(linear).unsqueeze(-1))
    norm.replace_input_with(linear, layer)
    with model.graph.inserting_after(norm):
        flat = _call(model, aten.squeeze.dim, (norm, -1), norm, value_of(norm))
    norm.replace_all_uses_with(flat, delete_user_cb=lambda user: user is not flat)
    norm.meta["val"] = value_of(norm).unsqueeze(-1)
    model.graph.erase_node(linear)
    model.graph.erase_node(weight)


def _call(model: GraphModule, target: object, args: tuple, like: Node, value: object) -> Node:
    name = stable_name(like, str(target).split(".")[1])
    node = model.graph.create_node("call_function", target, args, name=name)
    node.meta = {key: item for key, item in like.meta.items() if key not in ("val", "tensor_meta")}
    node.meta["val"] = value
    return node
