"""ReplaceChannelAverage: replaces the mean over neighbouring channels in local response norm by a 1x1 convolution.

Before:  y = avg_pool3d(pad(x.unsqueeze(1), [0, 0, 0, 0, 2, 2]), [5, 1, 1], stride 1)
After:   y = conv2d(x, w).unsqueeze(1), w holding 1/5 in a band
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert

_PADS = frozenset({"aten.pad.default", "aten.constant_pad_nd.default"})


def replace_channel_average(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes. Windows over height or width stay."""
    count = 0
    for node in list(model.graph.nodes):
        if operator_name(node) != "aten.avg_pool3d.default":
            continue
        given = arguments(node)
        x, window = given["self"], list(given["kernel_size"])
        stride = list(given["stride"]) or window
        plain = not any(given["padding"]) and not given["ceil_mode"] and given["divisor_override"] is None
        if (
            window[1:] != [1, 1]
            or stride != [1, 1, 1]
            or not plain
            or value_of(x).dim() != 5
            or value_of(x).shape[1] != 1
        ):
            continue
        before = 0
        if operator_name(x) in _PADS and _pads_channels(x):
            before, x = arguments(x)["pad"][4], x.args[0]
        call, aten = Insert(model, node), torch.ops.aten
        weights = _band(int(value_of(x).shape[2]), int(value_of(node).shape[2]), window[0], before)
        with model.graph.inserting_before(node):
            constant = add_constant(model, "_band", weights)
        averaged = call(aten.conv2d.default, call(aten.squeeze.dim, x, 1), constant)
        node.replace_all_uses_with(call(aten.unsqueeze.default, averaged, 1))
        model.graph.erase_node(node)
        count += 1
    return count


def _pads_channels(node: Any) -> bool:
    """Return whether a node only adds zeros in front of and behind the channels."""
    given = arguments(node)
    pads = list(given["pad"])
    zero = given.get("mode", "constant") == "constant" and not given.get("value")
    return isinstance(node, Node) and zero and len(pads) == 6 and not any(pads[:4]) and min(pads) >= 0


def _band(channels: int, outputs: int, width: int, before: int) -> torch.Tensor:
    weights = torch.zeros(outputs, channels, 1, 1)
    for at in range(outputs):
        weights[at, max(at - before, 0) : max(at - before + width, 0)] = 1.0 / width
    return weights
