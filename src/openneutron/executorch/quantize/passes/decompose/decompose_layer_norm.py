"""DecomposeLayerNorm: decomposes layer normalisation into operators that have INT8 forms.

Before:  y = layer_norm(x, [n], g, b, eps)
After:   d = x - mean(x); y = d * rsqrt(sum(d * d) / n + eps) * g + b

The sum has its own range, so the variance gets all 256 steps; a mean would share the range of the largest square. To keep a
norm in float, exclude its module from quantization: `NeutronQuantizer(exclude=["LayerNorm"])`.
"""

from __future__ import annotations

import math

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, shape_of
from openneutron.executorch.quantize.passes._insert import Insert

_NORM = "aten.layer_norm.default"


def decompose_layer_norm(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten norms."""
    found = [node for node in model.graph.nodes if operator_name(node) == _NORM and is_static(node.args[0])]
    for node in found:
        _decompose(model, node)
    return len(found)


def _decompose(model: GraphModule, node: Node) -> None:
    given = arguments(node)
    dims = list(range(-len(given["normalized_shape"]), 0))
    call = Insert(model, node)
    result = normalize(call, given["input"], dims, float(given["eps"]), given["weight"], given["bias"])
    node.replace_all_uses_with(result)
    model.graph.erase_node(node)


def normalize(
    call: Insert, x: Node, dims: list[int], epsilon: float, factor: Node | None = None, offset: Node | None = None
) -> Node:
    """Insert the operators of a normalisation over some dimensions; factor and offset broadcast."""
    aten = torch.ops.aten
    count = math.prod(shape_of(x)[dim] for dim in dims)
    centred = call(aten.sub.Tensor, x, call(aten.mean.dim, x, dims, True))
    total = call(aten.sum.dim_IntList, call(aten.mul.Tensor, centred, centred), dims, True)
    variance = call(aten.add.Tensor, call(aten.mul.Tensor, total, 1.0 / count), epsilon)
    result = call(aten.mul.Tensor, centred, call(aten.rsqrt.default, variance))
    if factor is not None:
        result = call(aten.mul.Tensor, result, factor)
    return result if offset is None else call(aten.add.Tensor, result, offset)
