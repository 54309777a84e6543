"""Softmax over any dimension: it is brought to the end of memory order first, which for channels costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Order, Value, channels_last
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# LiteRT's kernels accept no other parameters: probabilities in steps of 1/256.
OUTPUT = Quantization((1 / 256,), (-128,))
WIDE_OUTPUT = Quantization((2.0**-15,), (0,))


@annotates("aten.softmax.int", "aten._softmax.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Use the fixed quantization that LiteRT's kernels require for probabilities."""
    a.probabilities(node, OUTPUT.scale[0], OUTPUT.zero_point[0])


@lowers("aten._softmax.default", cpu="exponential", wide_tolerance=8)
def lower(call: Call) -> Value:
    """Lower to SOFTMAX with beta 1; for 16 bits LiteRT interpolates in two tables, with an error of a few steps."""
    x = call.activation("self")
    call.output_quantization()  # rejects a result that is read in float
    order = last_in_memory(call, x, call.dim(call["dim"], x.rank))
    value, made = call.result(order, OUTPUT if call.dtype is DType.INT8 else WIDE_OUTPUT)
    call.emit("SOFTMAX", [call.tensor(x, order)], [made], beta=1.0)
    return value


def last_in_memory(call: Call, x: Value, dim: int) -> Order:
    """Return an order of `x` that ends with `dim`, preferably one that exists."""
    rest = tuple(i for i in range(x.rank) if i != dim)
    candidates = [channels_last(x.rank)] if dim == 1 and x.rank > 2 else []
    candidates.append((*rest, dim))
    return next((order for order in candidates if call.layouts.available(x, order)), candidates[0])
