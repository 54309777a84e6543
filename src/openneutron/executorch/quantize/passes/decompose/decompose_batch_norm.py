"""DecomposeBatchNorm: turns a batch norm that could not be folded into the layer before it into a scale and a shift.

Before:  y = batch_norm(x, g, b, mean, variance, eps), in evaluation, behind something that is no layer
After:   y = x * f + s with constants f = g / sqrt(variance + eps), s = b - mean * f

For images, and volumes seen as such, this is a depth-wise convolution of one pixel: each channel's factor has a scale of its
own and the shift 32 bits, where the operands of a product and of a sum have 8 bits and share one scale.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

_NORM = "aten.batch_norm.default"
_IMAGE = 4  # dimensions


def decompose_batch_norm(model: GraphModule) -> int:
    """Rewrite the graph in place.

    Returns the number of rewritten norms. One in training or without running statistics stays.
    """
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) != _NORM or arguments(node)["training"]:
            continue
        constants = _scale_and_shift(model, node)
        if constants is not None:
            _replace(model, node, *constants)
            count += 1
    return count


def _scale_and_shift(model: GraphModule, node: Node) -> tuple[torch.Tensor, torch.Tensor] | None:
    given = arguments(node)
    names = ("running_mean", "running_var", "weight", "bias")
    tensors = [None if given[name] is None else tensor_of(model, given[name]) for name in names]
    mean, variance, weight, bias = tensors
    if (
        mean is None
        or variance is None
        or any(given[n] is not None and t is None for n, t in zip(names, tensors, strict=True))
    ):
        return None
    scale = torch.rsqrt(variance.double() + given["eps"])
    scale = scale if weight is None else scale * weight.double()
    shift = -mean.double() * scale
    shift = shift if bias is None else shift + bias.double()
    return scale.float(), shift.float()


def _replace(model: GraphModule, node: Node, scale: torch.Tensor, shift: torch.Tensor) -> None:
    shape = list(value_of(node.args[0]).shape)
    image = len(shape) >= _IMAGE
    factors = scale.reshape(-1, 1, 1, 1) if image else scale.reshape(1, -1, *[1] * (len(shape) - 2))
    with model.graph.inserting_before(node):
        factor = add_constant(model, "_norm_scale", factors)
        term = add_constant(model, "_norm_shift", shift if image else shift.reshape(factors.shape))
    call, aten = Insert(model, node), torch.ops.aten
    result: Any = node.args[0]
    if image:
        if len(shape) > _IMAGE:
            result = call(aten.reshape.default, result, [*shape[:2], -1, shape[-1]])
        result = call(aten.conv2d.default, result, factor, term, [1, 1], [0, 0], [1, 1], scale.numel())
        if len(shape) > _IMAGE:
            result = call(aten.reshape.default, result, shape)
    else:
        result = call(aten.add.Tensor, call(aten.mul.Tensor, result, factor), term)
    node.replace_all_uses_with(result)
    model.graph.erase_node(node)
