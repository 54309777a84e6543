"""A rough model of what operators of Edge programs cost on the host's Cortex-M33; constants: `openneutron.board.cpu`.

Good enough to compare a tiny partition with the same work on the CPU, and to put the CPU's part into a whole-program
latency; not a prediction of milliseconds to the digit.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from openneutron.board.cpu import CpuCosts
from openneutron.errors import OptionError
from openneutron.executorch.fx import GETITEM, arguments, operator_name, value_of
from openneutron.machine import targets

_MATMUL = ("linear", "addmm", "mm", "bmm", "matmul")
_TABLES = ("sigmoid", "tanh", "silu", "gelu", "log", "sqrt", "rsqrt", "exp", "quantized_activation", "hardswish")
_MOVES = ("permute", "transpose", "cat", "slice", "pad", "copy", "clone", "flip", "gather", "index", "select", "stack")
_FREE = ("view", "alloc", "unsqueeze", "squeeze", "reshape", "getitem")


def cpu_clock(target: str) -> int:
    """Clock of the target's CPU; an `OptionError` where no model of it exists."""
    clock = targets.load(target).cpu_clock_hz if target in targets.names() else 0
    if not clock:
        known = [name for name in targets.names() if targets.load(name).cpu_clock_hz]
        raise OptionError(
            f"there is no model of {target}'s CPU", hint=f'use placement="all", or one of {", ".join(known)}'
        )
    return clock


def cpu_cycles(node: Node, costs: CpuCosts) -> int:
    """Estimated cycles of one operator of an Edge program on the CPU.

    Example:
        >>> cpu_cycles(convolution, CORTEX_M)
        40005222
    """
    name = operator_name(node)
    base = name.split(".")[-2] if name.count(".") >= 1 else name
    if name == GETITEM or _is(base, _FREE):
        return 0
    value = _first(value_of(node))
    if value is None:
        return 0
    return round(costs.call + _work(node, base, value, costs))


def _work(node: Node, base: str, out: torch.Tensor, costs: CpuCosts) -> float:
    elements = out.numel()
    if "conv" in base:
        macs, depthwise = _convolution(node, base, out)
        return macs * (costs.depthwise_mac if depthwise else costs.mac)
    if base in _MATMUL or "linear" in base or "matmul" in base:
        return elements * _inner(node, base) * costs.mac
    if "pool" in base:
        kernel = _list(arguments(node).get("kernel_size"))
        return elements * math.prod(kernel or [1]) * costs.tap
    if "softmax" in base:
        return elements * costs.exponential
    if base in ("mean", "sum", "amax", "amin"):
        source = _first(value_of(node.all_input_nodes[0]))
        return (source.numel() if source is not None else elements) * costs.tap
    if base in _TABLES:
        return elements * costs.table
    if _is(base, _MOVES):
        return elements * out.element_size() * costs.move
    return elements * costs.element


def _convolution(node: Node, base: str, out: torch.Tensor) -> tuple[float, bool]:
    """Multiply-accumulates, and whether no input channel is shared between outputs."""
    weight = _first(value_of(arguments(node)["weight"]))
    if weight is None:
        return 0.0, False
    if "depthwise" in base:
        return out.numel() * weight.shape[1] * weight.shape[2], True
    depthwise = base == "convolution" and weight.shape[1] == 1 and arguments(node).get("groups", 1) > 1
    channels = weight.shape[0]
    if base == "convolution" and arguments(node).get("transposed"):
        source = _first(value_of(node.args[0]))
        return (source.numel() if source is not None else 0) * weight[0].numel(), False
    return out.numel() * (weight.numel() / channels), depthwise


def _inner(node: Node, base: str) -> int:
    """The length of the products' sums."""
    given = arguments(node)
    name = next((key for key in ("input", "lhs", "mat1", "self") if key in given), "")
    value = _first(value_of(given[name])) if name and isinstance(given[name], Node) else None
    return int(value.shape[-1]) if value is not None else 1


def _is(base: str, names: tuple[str, ...]) -> bool:
    return any(name in base for name in names)


def _list(value: Any) -> list[int]:
    return [int(x) for x in value] if isinstance(value, (list, tuple)) else []


def _first(value: Any) -> torch.Tensor | None:
    value = value[0] if isinstance(value, (list, tuple)) and value else value
    return value if isinstance(value, torch.Tensor) else None
