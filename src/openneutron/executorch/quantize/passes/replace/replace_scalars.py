"""ReplaceScalars: turns a number operand into a constant tensor, so that it is quantized like one.

Before:  y = mul(x, 2.0)                     y = div(x, 4)             y = rsub(x, 1.0)
After:   c = get_attr(_scalar_0); mul(x, c)  c holds 0.25; mul(x, c)   sub(c, x)

The constant is one element; the quantizer gives it a scale of its own magnitude, so it stays exact.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant

_BINARY = frozenset(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div"))
_REVERSED = "aten.rsub.Scalar"
_IN_PLACE = {f"aten.{name}_.Tensor": f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div")}


def replace_scalars(model: GraphModule) -> int:
    """Turn scalar operands of add, sub, rsub, mul and div into buffers; a division by a number becomes a multiplication."""
    count = 0
    for node in list(model.graph.nodes):
        name = _IN_PLACE.get(operator_name(node), operator_name(node))
        if name not in _BINARY | {_REVERSED} or len(node.args) != 2 or node.kwargs:
            continue
        x, number = node.args
        if not _is_float_tensor(x) or isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if name == "aten.div.Tensor":
            if number == 0:
                continue
            name, number = "aten.mul.Tensor", 1.0 / number
        if not math.isfinite(number):
            continue
        with model.graph.inserting_before(node):
            tensor = torch.tensor(float(number), dtype=torch.float32).reshape((1,) * value_of(x).dim())
            constant = add_constant(model, "_scalar", tensor)
        if name == _REVERSED:
            node.target, node.args = torch.ops.aten.sub.Tensor, (constant, x)
        else:
            node.target, node.args = getattr(torch.ops.aten, name.split(".")[1]).Tensor, (x, constant)
        count += 1
    return count


def _is_float_tensor(x: Any) -> bool:
    value = value_of(x) if isinstance(x, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32
