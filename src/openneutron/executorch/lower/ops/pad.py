"""Padding with a constant; negative amounts cut."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.fx import arguments
from openneutron.executorch.lower.ops._clamp import quantize_number
from openneutron.executorch.lower.ops._slice import cut
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.pad.default", "aten.constant_pad_nd.default", wide=True)
@annotates("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are copied, so input and output share their parameters; the observer includes the pad value."""
    a.share_parameters(node)


@limit("the value to pad with must be representable in the input's quantization")
def representable(call: Call) -> Verdict:
    """A pad value may exceed the range by half a step, which rounding removes."""
    x, value = call.value("self"), fill_of(call)
    assert x.quantization is not None
    scale, zero = x.quantization.scale[0], x.quantization.zero_point[0]
    limits = np.iinfo(x.storage.dtype.numpy)
    low, high = (limits.min - zero - 0.5) * scale, (limits.max - zero + 0.5) * scale
    if math.isfinite(value) and low <= value <= high:
        return OK
    return no(f"it is {value:g}, the range is [{low:g}, {high:g}]", hint="calibrate with the padding in place")


@limit("the mode must be constant or reflect")
def known_mode(call: Call) -> Verdict:
    """LiteRT mirrors without repeating the edge; replicating and wrapping around it cannot."""
    mode = call.arguments.get("mode", "constant")
    return OK if mode in ("constant", "reflect") else no(f"it is {mode}", hint="pad with a constant or by reflection")


def fill_of(call: Call) -> float:
    """Return the number to pad with."""
    return float(call.arguments.get("value") or 0.0)


def paddings(call: Call, rank: int) -> list[list[int]]:
    """Return (before, after) of each dimension; PyTorch lists them from the last dimension on."""
    flat = [int(amount) for amount in call["pad" if "pad" in call.arguments else "padding"]]
    pads = [[0, 0] for _ in range(rank)]
    for position in range(len(flat) // 2):
        pads[rank - 1 - position] = flat[2 * position : 2 * position + 2]
    return pads


@lowers("aten.constant_pad_nd.default", limits=(representable,), cpu="move")
def lower(call: Call) -> Value:
    """Lower to PAD for zero, to PADV2 for other values; negative amounts become a SLICE before it."""
    x = call.activation("self")
    quantization = x.quantization
    assert quantization is not None
    pads = paddings(call, x.rank)
    if any(amount < 0 for pair in pads for amount in pair):
        begin = [max(-before, 0) for before, _ in pads]
        size = [n + min(before, 0) + min(after, 0) for n, (before, after) in zip(x.shape, pads, strict=True)]
        x = cut(call, x, begin, size, [1] * x.rank)
        pads = [[max(amount, 0) for amount in pair] for pair in pads]
    if not any(amount for pair in pads for amount in pair):
        return x
    order = call.common_order([x])
    fill = quantize_number(fill_of(call), quantization, x.storage.dtype)
    tensors = [call.tensor(x, order), call.constant("pads", [pads[dim] for dim in order], DType.INT32)]
    value, made = call.result(order, quantization)
    if fill == quantization.zero_point[0]:
        call.emit("PAD", tensors, [made])
    else:
        call.emit("PADV2", [*tensors, call.constant("fill", [fill], x.storage.dtype, quantization)], [made])
    return value


def _reflects(node: Node) -> bool:
    """Return whether the padding reflects; its decomposition would be index arithmetic."""
    return arguments(node)["mode"] == "reflect"


@lowers("aten.pad.default", limits=(known_mode, representable), preserve=_reflects, cpu="move")
def lower_pad(call: Call) -> Value:
    """Lower the operator before its decomposition: reflection cannot be recognized afterwards."""
    return lower_reflection(call) if call["mode"] == "reflect" else lower(call)


@lowers("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", preserve=True, cpu="move")
def lower_reflection(call: Call) -> Value:
    """Lower to MIRROR_PAD without repeating the edge."""
    x = call.activation("self")
    pads = paddings(call, x.rank)
    order = call.common_order([x])
    amounts = call.constant("pads", [pads[dim] for dim in order], DType.INT32)
    value, made = call.result(order, x.quantization)
    call.emit("MIRROR_PAD", [call.tensor(x, order), amounts], [made], mode="REFLECT")
    return value
