"""ReplaceResize: resizes signals as images, and images with cubic or antialiased weights by products with matrices.

Before:  y = upsample_linear1d(x, scale 2)
After:   y = squeeze(upsample_bilinear2d(unsqueeze(x, 2), scale [1, 2]), 2)

Before:  y = upsample_bicubic2d(x, scale 2)
After:   y = transpose(linear(transpose(linear(x, wide), 2, 3), high), 2, 3)
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert

_aten: Any = torch.ops.aten
_IMAGES = {
    "aten.upsample_linear1d.vec": _aten.upsample_bilinear2d.vec,
    "aten.upsample_nearest1d.vec": _aten.upsample_nearest2d.vec,
}
_WEIGHTED = frozenset(
    {"aten.upsample_bicubic2d.vec", "aten._upsample_bicubic2d_aa.vec", "aten._upsample_bilinear2d_aa.vec"}
)
# The largest matrix of weights: 64 KiB, as for other constants that are made here.
_MOST_WEIGHTS = 1 << 16


def replace_resize(model: GraphModule) -> int:
    """Rewrite in place; returns the number of rewritten resizes.

    Images that need larger matrices are left unchanged.
    """
    count = 0
    for node in list(model.graph.nodes):
        name = operator_name(node)
        if name not in (*_IMAGES, *_WEIGHTED) or not is_static(node):
            continue
        made = _as_image(model, node) if name in _IMAGES else _as_products(model, node)
        if made is not None:
            node.replace_all_uses_with(made)
            model.graph.erase_node(node)
            count += 1
    return count


def _as_image(model: GraphModule, node: Node) -> Node:
    given, call = arguments(node), Insert(model, node)
    size, factors = given["output_size"], given["scale_factors"]
    height = (None if size is None else [1, *size], None if factors is None else [1.0, *factors])
    corners = [given["align_corners"]] if "align_corners" in given else []
    image = call(_aten.unsqueeze.default, given["input"], 2)
    return call(_aten.squeeze.dim, call(_IMAGES[operator_name(node)], image, height[0], *corners, height[1]), 2)


def _as_products(model: GraphModule, node: Node) -> Node | None:
    call, x = Insert(model, node), arguments(node)["input"]
    matrices = [_matrix(node, axis) for axis in (1, 0)]
    if any(one.numel() > _MOST_WEIGHTS for one in matrices):
        return None
    for matrix in matrices:
        with model.graph.inserting_before(node):
            weights = add_constant(model, "_resize", matrix)
        x = call(_aten.transpose.int, call(_aten.linear.default, x, weights), 2, 3)
    return x  # type: ignore[no-any-return]


def _matrix(node: Node, axis: int) -> torch.Tensor:
    """Return each output pixel's weights for the image's pixels along one axis, by running the operator itself."""
    given = arguments(node)
    size, out = int(value_of(given["input"]).shape[2 + axis]), int(value_of(node).shape[2 + axis])
    factors = given["scale_factors"]
    sizes = [out, size] if axis == 0 else [size, out]
    scales = None
    if factors is not None:
        sizes, scales = None, [factors[0], 1.0] if axis == 0 else [1.0, factors[1]]  # type: ignore[assignment]
    resized = node.target(torch.eye(size)[None, None], sizes, given["align_corners"], scales)  # type: ignore[operator]
    return (resized[0, 0] if axis == 0 else resized[0, 0].t()).contiguous()  # type: ignore[no-any-return]
