"""Fold a stored factor or summand after a convolution into its weights and its bias.

Before:  c = Conv(x, W, b); m = Mul(c, s); y = Add(m, t)        After:  y = Conv(x, s · W, s · b + t)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from openneutron.onnx.fuse.graph import Graph

_CHANNELS = {"Conv": 0, "ConvTranspose": 1}  # the weights' dimension of output channels


def affine(graph: Graph, node: Any) -> bool:
    """Fold a product or sum with one number, or with one per channel."""
    if node.domain or node.op_type not in ("Mul", "Add") or len(node.input) != 2:
        return False
    for source, other in (tuple(node.input), tuple(node.input)[::-1]):
        conv = next((made for op in _CHANNELS if (made := graph.made_by(source, op)) is not None), None)
        data = graph.constant(other) if conv is not None else None
        if data is not None and _fold(graph, node, conv, data):
            return True
    return False


def _fold(graph: Graph, node: Any, conv: Any, data: Any) -> bool:
    groups = next((one.i for one in conv.attribute if one.name == "group"), 1)
    if conv.op_type == "ConvTranspose" and groups != 1:
        return False
    weights = graph.constant(conv.input[1])
    has_bias = len(conv.input) > 2 and bool(conv.input[2])
    bias = graph.constant(conv.input[2]) if has_bias else None
    if weights is None or weights.dtype != np.float32 or data.dtype != np.float32 or (has_bias and bias is None):
        return False
    channels = weights.shape[_CHANNELS[conv.op_type]]
    vector = _vector(data, channels, weights.ndim)
    if vector is None or not np.isfinite(vector).all():
        return False
    bias = np.zeros(channels, np.float32) if bias is None else bias
    names = list(conv.input[:2])
    if node.op_type == "Mul":
        along = [1] * weights.ndim
        along[_CHANNELS[conv.op_type]] = channels
        names[1] = graph.store(weights * vector.reshape(along), conv.input[1])
    bias = bias * vector if node.op_type == "Mul" else bias + vector
    attributes, name, op_type = list(conv.attribute), conv.name, conv.op_type
    graph.replace(node, [conv], op_type, [*names, graph.store(bias, conv.input[1])])
    node.domain, node.name = "", name or node.name
    node.attribute.extend(attributes)
    return True


def _vector(data: Any, channels: int, rank: int) -> Any:
    """Return one number per channel, None if the operand varies along another dimension."""
    if data.ndim > rank:
        return None
    shape = (1,) * (rank - data.ndim) + data.shape
    if shape[1] not in (1, channels) or any(size != 1 for at, size in enumerate(shape) if at != 1):
        return None
    return np.broadcast_to(data.reshape(-1), (channels,)).astype(np.float32)
