"""Functions of one value: LiteRT computes them as a table of 256 entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openneutron.executorch.lower.values import Value
from openneutron.litert.graph import Quantization

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


def lower_unary(call: Call, code: str, quantization: Quantization | None = None, **options: Any) -> Value:
    """Emit `code` in whatever order the input exists; the parameters are the reader's unless given."""
    x = call.activation(next(iter(call.arguments)))
    order = call.common_order([x])
    value, made = call.result(order, quantization or call.output_quantization())
    call.emit(code, [call.tensor(x, order)], [made], **options)
    return value
