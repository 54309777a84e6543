"""A rough model of what operators of Edge programs cost on the chip's CPU; constants: `openneutron.board.cpu`.

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
from openneutron.executorch.operators import lowerings
from openneutron.machine import targets

# Operators that no lowering rule knows: those of the Cortex-M engine, ExecuTorch's own, and what only the CPU runs.
_OTHERS = {
    "quantized_conv2d": "conv", "quantized_depthwise_conv2d": "conv", "quantized_transpose_conv2d": "conv",
    "quantized_linear": "matmul", "quantized_batch_matmul": "matmul", "matmul": "matmul",
    "quantized_avg_pool2d": "pool", "quantized_max_pool2d": "pool", "max_pool2d": "pool",
    "avg_pool1d": "pool", "avg_pool3d": "pool",
    "softmax": "exponential", "_log_softmax": "exponential", "quantized_activation": "table",
    "transpose": "move", "pad": "move", "flip": "move", "gather": "move", "index": "move", "index_select": "move",
    "select_copy": "move", "alloc": "free", "getitem": "free", "view": "free", "squeeze_copy": "free", "unsqueeze_copy": "free",
}  # fmt: skip

# Bilinear interpolation weighs the four nearest pixels.
_CORNERS = 4


def cpu_clock(target: str) -> int:
    """Clock of the target's CPU; an `OptionError` where no model of it exists."""
    if target not in targets.names():
        raise OptionError(
            f"there is no model of {target}'s CPU", hint=f'use placement="all", or one of {", ".join(targets.names())}'
        )
    return targets.load(target).cpu_clock_hz


def cpu_cycles(node: Node, costs: CpuCosts) -> int:
    """Estimated cycles of one operator of an Edge program on the CPU.

    Example:
        >>> cpu_cycles(convolution, CORTEX_M)
        40005222
    """
    value = _first(value_of(node))
    kind = cpu_class(node)
    if value is None or kind == "free":
        return 0
    return round(costs.call + _work(node, kind, value, costs))


def cpu_class(node: Node) -> str:
    """What dominates the operator on the CPU: its lowering rule says, or the table above; else its elements."""
    name = operator_name(node)
    if name == GETITEM:
        return "free"
    rule = lowerings().get(name)
    if rule is not None:
        return rule.cpu
    base = name.split(".")[-2] if name.count(".") >= 1 else name
    return _OTHERS.get(base.removesuffix("_nhwc"), "element")


def _work(node: Node, kind: str, out: torch.Tensor, costs: CpuCosts) -> float:
    elements = out.numel()
    match kind:
        case "conv":
            macs, depthwise = _convolution(node, operator_name(node).split(".")[-2], out)
            return macs * (costs.depthwise_mac if depthwise else costs.mac)
        case "matmul":
            return elements * _inner(node) * costs.mac
        case "pool":
            return elements * math.prod(_list(arguments(node).get("kernel_size")) or [1]) * costs.tap
        case "interpolate":
            return elements * _CORNERS * costs.tap
        case "reduce":
            source = _first(value_of(node.all_input_nodes[0]))
            return (source.numel() if source is not None else elements) * costs.tap
        case "exponential":
            return elements * costs.exponential
        case "table":
            return elements * costs.table
        case "move":
            return elements * out.element_size() * costs.move
        case _:
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


def _inner(node: Node) -> int:
    """The length of the products' sums."""
    given = arguments(node)
    name = next((key for key in ("input", "lhs", "mat1", "self") if key in given), "")
    value = _first(value_of(given[name])) if name and isinstance(given[name], Node) else None
    return int(value.shape[-1]) if value is not None else 1


def _list(value: Any) -> list[int]:
    return [int(x) for x in value] if isinstance(value, (list, tuple)) else []


def _first(value: Any) -> torch.Tensor | None:
    value = value[0] if isinstance(value, (list, tuple)) and value else value
    return value if isinstance(value, torch.Tensor) else None
