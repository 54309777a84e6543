"""DecomposeComposites: recurrent layers, attention and stray batch norms become operators that can be quantized inside.

Before:  y, h = gru(x, h0, weights, ...)
After:   linear, split, sigmoid, tanh, mul, add of every time step
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from openneutron.executorch.fx import GETITEM, arguments, operator_name, value_of
from openneutron.executorch.passes.aten._attributes import add_constant
from openneutron.executorch.passes.aten._lstm import lstm


def decompose_composites(model: GraphModule) -> int:
    """Replace in place; returns how many operators were taken apart."""
    count = 0
    for node in list(model.graph.nodes):
        function = _decomposition(node)
        if function is not None:
            _inline(model, node, function)
            count += 1
    return count


def _decomposition(node: Node) -> Callable[..., Any] | None:
    name = operator_name(node)
    if name == "aten.gru.input":
        given = arguments(node)
        return None if given["train"] and given["dropout"] else _gru()
    if name == "aten.lstm.input":
        given = arguments(node)
        # A projection of the hidden state shows in its width.
        projected = value_of(given["hx"][0]).shape[-1] != value_of(given["hx"][1]).shape[-1]
        return None if projected or (given["train"] and given["dropout"]) else lstm
    if name == "aten.scaled_dot_product_attention.default":
        given = arguments(node)
        # A mask would stretch the range of the scores until nothing else is resolved in INT8.
        plain = given["attn_mask"] is None and not given["is_causal"] and not given["dropout_p"]
        return _attention if plain and not given["enable_gqa"] else None
    if name == "aten.batch_norm.default":
        given = arguments(node)
        return None if given["training"] or given["running_mean"] is None else _batch_norm
    return None


def _gru() -> Callable[..., Any]:
    from torch._decomp import get_decompositions

    return get_decompositions([torch.ops.aten.gru.input])[torch.ops.aten.gru.input]


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, scale: float | None = None, **options: Any
) -> torch.Tensor:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    return torch.matmul(torch.softmax(scores, -1), value)


def _batch_norm(
    x: torch.Tensor, weight: Any, bias: Any, mean: torch.Tensor, variance: torch.Tensor, training: bool,
    momentum: float, eps: float, cudnn: bool,
) -> torch.Tensor:  # fmt: skip
    factor = torch.rsqrt(variance + eps)
    factor = factor if weight is None else factor * weight
    shift = -mean * factor
    shift = shift if bias is None else shift + bias
    view = [1, -1, *[1] * (x.dim() - 2)]
    return x * factor.reshape(view) + shift.reshape(view)


def _inline(model: GraphModule, node: Node, function: Callable[..., Any]) -> None:
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    sources = [leaf for leaf in leaves if isinstance(leaf, Node)]

    def call(*tensors: Any) -> Any:
        given = iter(tensors)
        filled = [next(given) if isinstance(leaf, Node) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(filled, structure)
        return function(*args, **kwargs)

    values = [value_of(source) for source in sources]
    mode = next(value.fake_mode for value in values if hasattr(value, "fake_mode"))
    with mode, torch.no_grad():
        # Before dispatch, so that linear, chunk and the like stay what they are.
        traced = make_fx(call, pre_dispatch=True)(*values)
    inner: dict[Node, Node] = {}
    given = iter(sources)
    with model.graph.inserting_before(node):
        for part in traced.graph.nodes:
            if part.op == "placeholder":
                inner[part] = next(given)
            elif part.op == "call_function":
                inner[part] = _copied(model, part, inner, node)
            elif part.op == "get_attr":
                inner[part] = _constant(model, traced, part)
    _replace(model, node, traced.graph.output_node().args[0], inner)


def _copied(model: GraphModule, part: Node, inner: dict[Node, Node], origin: Node) -> Node:
    made = model.graph.node_copy(part, lambda source: inner[source])
    made.meta = {**{key: value for key, value in origin.meta.items() if key not in ("val", "tensor_meta")}, **part.meta}
    return made


def _constant(model: GraphModule, traced: GraphModule, part: Node) -> Node:
    data = getattr(traced, str(part.target))
    return add_constant(model, "_decomposed", data)


def _replace(model: GraphModule, node: Node, results: Any, inner: dict[Node, Node]) -> None:
    if isinstance(results, Node):
        node.replace_all_uses_with(inner[results])
    else:
        for user in [user for user in node.users if operator_name(user) == GETITEM]:
            user.replace_all_uses_with(inner[results[user.args[1]]])
            model.graph.erase_node(user)
    model.graph.erase_node(node)
