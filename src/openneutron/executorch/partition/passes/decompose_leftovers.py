"""DecomposeLeftovers: what was kept whole for the NPU and stays on the CPU all the same becomes core operators.

Before:  y = silu(x), which the CPU's runtime has no kernel for
After:   s = sigmoid(x); y = mul(x, s)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from openneutron.errors import UnsupportedError
from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.lower import layer_calls
from openneutron.executorch.upstream.edge_names import edge_decompositions, edge_operator
from openneutron.executorch.upstream.names import OpOverload, aten_operator, overload_of, schema_of


def decompose_leftovers(model: GraphModule, is_kept: Callable[[Node], bool]) -> int:
    """Replace every node for which `is_kept` is true, and layers kept whole, in place; returns how many there were."""
    asked = [node for node in model.graph.nodes if operator_name(node) == layer_calls.OPERATOR or is_kept(node)]
    table = _table() if asked else {}  # making it takes a third of a second
    kept = [node for node in asked if aten_operator(node.target) in table]
    for node in kept:
        results = _insert(model.graph, node, _trace(node, table))
        if isinstance(results, Node):
            node.replace_all_uses_with(results)
        for part in list(node.users) if not isinstance(results, Node) else ():
            part.replace_all_uses_with(results[part.args[1]])
            model.graph.erase_node(part)
        name = node.name
        model.graph.erase_node(node)
        if isinstance(results, Node) and any(user.op == "output" for user in results.users):
            results.name = name  # results of the program are known by name
    if kept:
        model.recompile()
    return len(kept)


def _table() -> dict[Any, Any]:
    """ExecuTorch's own decompositions: what they yield is what its verifier takes."""
    return {**edge_decompositions(), torch.ops.openneutron.whole.default: layer_calls.run}


def _trace(node: Node, table: dict[Any, Any]) -> Graph:
    """The operator as a graph of core ATen operators, one placeholder for each tensor it reads."""
    operator = aten_operator(node.target)
    sources = node.all_input_nodes

    def call(*tensors: torch.Tensor) -> Any:
        given = dict(zip(sources, tensors, strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), given.__getitem__)
        return operator(*args, **kwargs)

    examples = [value_of(source) for source in sources]
    with torch.no_grad():
        core = make_fx(call, decomposition_table=table)(*examples)
        # Edge has no views, only copies.
        copying = torch.func.functionalize(core, remove="mutations_and_views")
        return make_fx(copying)(*examples).graph


def _insert(graph: Graph, node: Node, traced: Graph) -> Any:
    """Copy the traced calls in front of `node` as Edge operators; returns the node of the result, or of each of several."""
    copies = dict(zip((one for one in traced.nodes if one.op == "placeholder"), node.all_input_nodes, strict=True))
    kept = {key: value for key, value in node.meta.items() if key not in ("val", "tensor_meta", "spec")}
    for one in traced.nodes:
        if one.op == "placeholder":
            continue
        if one.op == "output":
            return map_arg(one.args[0], copies.__getitem__)
        if one.op != "call_function" or not isinstance(one.target, OpOverload):
            raise UnsupportedError(
                f"{operator_name(node)} cannot be decomposed for the CPU: {one.format_node()}", where=node.name,
                hint="replace it in the model",
            )  # fmt: skip
        target, extra = _edge_operator(one)
        args, kwargs = map_arg((one.args, {**one.kwargs, **extra}), copies.__getitem__)
        if extra:
            kwargs = {key: value for key, value in kwargs.items() if key != "memory_format"}
        with graph.inserting_before(node):
            made = graph.call_function(target, args, kwargs)
        made.meta = {**kept, "val": one.meta["val"]}
        copies[one] = made
    raise AssertionError("a graph without an output")


def _edge_operator(node: Node) -> tuple[Any, dict[str, Any]]:
    """The Edge form of an ATen call, and the arguments that it has beside those: Edge names orders of dimensions, and knows
    no number where an operator takes a tensor."""
    target = node.target
    assert isinstance(target, OpOverload)
    if target is torch.ops.aten.clone.default:
        copying = torch.ops.dim_order_ops._clone_dim_order.default
        return edge_operator(copying), {"dim_order": list(node.meta["val"].dim_order())}
    two = len(node.args) > 1 and str(schema_of(target).arguments[1].type) == "Tensor"
    number = overload_of(target) == "Tensor" and two and isinstance(node.args[1], (int, float))
    return edge_operator(target, "Scalar" if number else ""), {}
