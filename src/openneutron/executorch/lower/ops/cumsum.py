"""Cumulative sums: a product with a triangle of ones.

```text
[x0 x1 x2] · [1 1 1]  =  [x0, x0 + x1, x0 + x1 + x2]
             [0 1 1]
             [0 0 1]
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType, Quantization
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# The triangle takes the square of it in bytes of weights: 256 KiB.
_LONGEST = 512


@annotates("aten.cumsum.default")
def annotate(node: Node, a: Annotator) -> None:
    """Give the sums their own range."""
    a.compute(node, [node.args[0]])


@limit(f"the dimension must have at most {_LONGEST} elements")
def short_enough(call: Call) -> Verdict:
    """The weights grow with the square of the length."""
    length = call.shape[call.dim(call["dim"], len(call.shape))] if call.shape else 1
    return OK if length <= _LONGEST else no(f"it has {length}", hint="sum in pieces")


@lowers("aten.cumsum.default", limits=(short_enough,), cpu="matmul")
def lower(call: Call) -> Value:
    """Lower to FULLY_CONNECTED along the dimension; sums are exact in INT32 and rounded once."""
    x = call.activation("self")
    dim = call.dim(call["dim"], x.rank)
    order = (*(one for one in range(x.rank) if one != dim), dim)
    length = x.shape[dim]
    ones = Quantization((1.0,), (0,))
    triangle = call.constant("triangle", np.tril(np.ones((length, length), np.int8)), DType.INT8, ones)
    value, made = call.result(order, call.output_quantization())
    call.emit(
        "FULLY_CONNECTED", [call.tensor(x, order), triangle, -1], [made], fused_activation_function=0,
        keep_num_dims=x.rank != 2,
    )  # fmt: skip
    return value
