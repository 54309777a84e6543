"""Element-wise operators on two tensors, with NumPy's broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.executorch.layout import Value
from openneutron.litert.graph import Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.call import Call


@limit("both operands must be quantized INT8 tensors, at least one computed at run time")
def quantized_operands(call: Call) -> Verdict:
    values = [call.value("self"), call.value("other")]
    for value in values:
        if value.quantization is None:
            return no(f"{value.storage.name} is {value.storage.dtype}", hint="quantize the model with NeutronQuantizer")
    return no("both operands are constant") if all(value.is_constant for value in values) else OK


def lower_binary(
    call: Call, code: str, operands: tuple[Value, Value], quantization: Quantization | None, **options: Any
) -> Value:
    """Emit `code` on both operands in the cheapest order."""
    rank = len(call.shape)
    wide = [widened(value, rank) for value in operands]
    order = call.common_order(wide)
    tensors = [call.tensor(value, order) for value in wide]
    value, made = call.result(order, quantization)
    call.emit(code, tensors, [made], **options)
    return value


def widened(value: Value, rank: int) -> Value:
    """The value with ones in front, as broadcasting sees it."""
    wide = value.with_ones((1,) * (rank - value.rank) + value.shape)
    assert wide is not None
    return wide
