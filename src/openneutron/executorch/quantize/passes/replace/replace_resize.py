"""ReplaceResize: a signal that is resized is an image one pixel high.

Before:  y = upsample_linear1d(x, scale 2)
After:   y = squeeze(upsample_bilinear2d(unsqueeze(x, 2), scale [1, 2]), 2)
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule

from openneutron.executorch.fx import arguments, is_static, operator_name
from openneutron.executorch.quantize.passes._insert import Insert

_aten: Any = torch.ops.aten
_IMAGES = {
    "aten.upsample_linear1d.vec": _aten.upsample_bilinear2d.vec,
    "aten.upsample_nearest1d.vec": _aten.upsample_nearest2d.vec,
}


def replace_resize(model: GraphModule) -> int:
    """Rewrite in place; returns how many went."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) not in _IMAGES or not is_static(node):
            continue
        given, call = arguments(node), Insert(model, node)
        size, factors = given["output_size"], given["scale_factors"]
        height = (None if size is None else [1, *size], None if factors is None else [1.0, *factors])
        corners = [given["align_corners"]] if "align_corners" in given else []
        image = call(_aten.unsqueeze.default, given["input"], 2)
        made = call(_IMAGES[operator_name(node)], image, height[0], *corners, height[1])
        node.replace_all_uses_with(call(_aten.squeeze.dim, made, 2))
        model.graph.erase_node(node)
        count += 1
    return count
