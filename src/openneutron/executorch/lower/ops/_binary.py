"""Element-wise operators on two tensors, with NumPy's broadcasting."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from openneutron.executorch.fx import shape_of
from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call


@limit("both operands must be quantized tensors, at least one computed at run time")
def quantized_operands(call: Call) -> Verdict:
    values = [call.value("self"), call.value("other")]
    for value in values:
        if value.quantization is None:
            return no(
                f"{value.storage.name} is {value.storage.dtype}",
                hint="give calibration data, or quantize the model with NeutronQuantizer",
            )
    return no("both operands are constant") if all(value.is_constant for value in values) else OK


def by_a_number(node: Node) -> bool:
    """Return whether one operand has a single element: the result is then a function of the other operand."""
    shapes = [shape_of(source) for source in node.all_input_nodes]
    return any(prod(shape) == 1 for shape in shapes) and any(prod(shape) > 1 for shape in shapes)


def lower_binary(
    call: Call, code: str, operands: tuple[Value, Value], quantization: Quantization | None, **options: Any
) -> Value:
    """Emit `code` on both operands in the cheapest order."""
    rank = len(call.shape)
    wide = [widen(value, rank) for value in operands]
    order = call.common_order(wide)
    tensors = [call.tensor(value, order) for value in wide]
    value, made = call.result(order, quantization)
    if code in ("ADD", "SUB") and value.storage.dtype is DType.INT16:
        options["pot_scale_int16"] = False  # else LiteRT shifts, or refuses, where all scales are powers of two
    call.emit(code, tensors, [made], **options)
    return value


def widen(value: Value, rank: int) -> Value:
    """Return a view with dimensions of size 1 in front, as broadcasting does."""
    wide = value.with_ones((1,) * (rank - value.rank) + value.shape)
    assert wide is not None
    return wide


def same_quantization(call: Call, quantization: Quantization) -> tuple[Value, Value]:
    """Return both operands with the given quantization: LiteRT compares stored values and ignores scales."""
    first, second = (in_quantization(call, call.value(name), quantization) for name in ("self", "other"))
    return first, second


def in_quantization(call: Call, value: Value, quantization: Quantization) -> Value:
    """Return the value with the given quantization; constants are converted here, others by a QUANTIZE."""
    if value.quantization == quantization:
        return value
    if not value.is_constant:
        return call.lowering.requantize(value, quantization, f"{value.storage.name}_requantized")
    old = value.quantization
    assert old is not None
    real = (value.array().astype(np.float64) - old.zero_point[0]) * old.scale[0]
    dtype = call.dtype
    limits = np.iinfo(dtype.numpy)
    stored = np.clip(np.rint(real / quantization.scale[0]) + quantization.zero_point[0], limits.min, limits.max)
    name = f"{value.storage.name}_requantized"
    return call.layouts.constant(name, stored.astype(dtype.numpy), dtype, quantization)
