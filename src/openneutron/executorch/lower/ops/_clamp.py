"""Lowering of operators that clamp to constant bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.ops._activation import FUSED, bounds_of
from openneutron.executorch.lower.values import Value
from openneutron.litert.codes import CLAMPS
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call

# LiteRT has one more clamp as a separate operator than as a fused activation.
_OPERATORS = {bounds: code for code, bounds in CLAMPS.items()}
# With 16-bit activations LiteRT has only these two.
FUSED_OF_WIDE = {bounds: code for bounds, code in FUSED.items() if code in ("RELU", "RELU6")}


@limit("bounds must be numbers, at least one finite")
def finite_bounds(call: Call) -> Verdict:
    bounds = bounds_of(call.node)
    if bounds is None:
        return no("a bound is a tensor", hint="use numbers")
    return OK if any(math.isfinite(bound) for bound in bounds) else no(f"bounds are {bounds}")


def has_odd_bounds(node: Node) -> bool:
    """Return whether LiteRT has no operator with these bounds."""
    return bounds_of(node) not in _OPERATORS


def lower_clamp(call: Call) -> Value:
    """Lower to RELU, RELU6, RELU_N1_TO_1 or RELU_0_TO_1, otherwise to a requantization with MAXIMUM and MINIMUM."""
    bounds = bounds_of(call.node)
    assert bounds is not None
    x = call.of(call.node.args[0])
    quantization = call.output_quantization()
    code = (FUSED_OF_WIDE if call.dtype is DType.INT16 else _OPERATORS).get(bounds)
    if code is not None:
        order = call.common_order([x])
        value, made = call.result(order, quantization)
        call.emit(code, [call.tensor(x, order)], [made])
        return value
    if x.quantization != quantization:
        x = call.lowering.requantize(x, quantization, f"{call.node.name}_requantized")
    for operator, bound in (("MAXIMUM", bounds[0]), ("MINIMUM", bounds[1])):
        if math.isfinite(bound):
            order = call.common_order([x])
            value, made = call.result(order, quantization)
            limit_tensor = call.constant(
                "bound",
                np.full((1,) * x.rank, quantize_number(bound, quantization, call.dtype)),
                call.dtype,
                quantization,
            )
            call.emit(operator, [call.tensor(x, order), limit_tensor], [made])
            x = value
    return x


def quantize_number(number: float, quantization: Quantization, dtype: DType = DType.INT8) -> int:
    """Return the stored value nearest to a number."""
    limits = np.iinfo(dtype.numpy)
    return int(np.clip(round(number / quantization.scale[0]) + quantization.zero_point[0], limits.min, limits.max))
