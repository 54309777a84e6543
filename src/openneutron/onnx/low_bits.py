"""Layers of a float model whose weights another tool rounded to 4 bits: the quantizer keeps their quotients and groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from openneutron.litert.grouped_weights import find_group_size
from openneutron.onnx.tensors import type_name
from openneutron.onnx.values import Step

_SMALL = frozenset({"INT4", "UINT4", "INT2", "UINT2"})


def has_low_bits(graph: Any) -> bool:
    """Return whether a graph stores weights of at most 4 bits."""
    return any(node.op_type == "MatMulNBits" for node in graph.node) or any(
        type_name(one.data_type) in _SMALL for one in graph.initializer
    )


def low_bit_layers(steps: Iterable[Step]) -> dict[str, int]:
    """Return the group size of each call, by its name, that computes with a matrix of 4-bit weights; 0 is one per channel.

    Example:
        >>> low_bit_layers(elaborator.steps)
        {'/layers.0/q_proj/MatMul_Q4': 32}
    """
    found: dict[str, int] = {}
    for step in steps:
        for value in (*step.call.own, *step.call.inputs[1:]):
            size = None if value is None or value.fake is None or value.data is None else _group_size(value.data)
            if size is not None:
                found[step.call.name] = size
                break
    return found


def _group_size(weights: torch.Tensor) -> int | None:
    """Return the group size of weights [channels, inputs, 1, ...]; None for other tensors and for more bits."""
    if weights.dtype != torch.float32 or weights.dim() < 2 or weights[0, 0].numel() != 1 or not weights.numel():
        return None
    return find_group_size(weights.reshape(weights.shape[:2]).numpy())
