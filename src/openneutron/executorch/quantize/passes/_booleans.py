"""Masks of booleans as numbers: 1 where a mask is true, 0 where it is not.

```text
x > 0                     where(x > 0, 1, 0), a table of x
a > b                     where(a - b > 0, 1, 0)
p and q                   the product of both
p or q                    the larger one
p xor q                   (p and not q) or (not p and q)
not (p and q)             (not p) or (not q): a comparison is negated in its table, at no cost
```
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import MASK_KEY, Insert

COMPARISONS = ("gt", "ge", "lt", "le", "eq", "ne")
_aten: Any = torch.ops.aten
_AND = frozenset({"aten.logical_and.default", "aten.bitwise_and.Tensor", "aten.__and__.Tensor"})
_OR = frozenset({"aten.logical_or.default", "aten.bitwise_or.Tensor", "aten.__or__.Tensor"})
_XOR = frozenset({"aten.logical_xor.default", "aten.bitwise_xor.Tensor", "aten.__xor__.Tensor"})
_NOT = frozenset({"aten.logical_not.default", "aten.bitwise_not.default"})
_VIEWS = frozenset(
    f"aten.{name}"
    for name in ("expand.default", "permute.default", "reshape.default", "squeeze.dim", "squeeze.dims", "transpose.int",
                 "unsqueeze.default", "view.default", "slice.Tensor", "select.int")
)  # fmt: skip


def is_float(x: Any) -> bool:
    """Return whether a value of the graph is a tensor of float32."""
    value = value_of(x) if isinstance(x, Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32


def with_a_number(call: Insert, condition: Any) -> Node | None:
    """Return the comparison as one with a number, None if the mask is no comparison of float tensors."""
    if not is_comparison(condition):
        return None
    if operator_name(condition).endswith(".Scalar"):
        return condition if isinstance(condition, Node) else None
    apart = call(_aten.sub.Tensor, condition.args[0], condition.args[1])
    name = operator_name(condition).removeprefix("aten.").partition(".")[0]
    return call(getattr(_aten, name).Scalar, apart, 0.0)


def is_comparison(node: Any) -> bool:
    """Return whether a node compares a tensor of floats with a number or with another one."""
    operator, _, overload = (operator_name(node) if isinstance(node, Node) else "").removeprefix("aten.").partition(".")
    if operator not in COMPARISONS or not is_float(node.args[0]):
        return False
    return overload == "Scalar" or (overload == "Tensor" and is_float(node.args[1]))


def is_made_of_comparisons(model: GraphModule, mask: Any) -> bool:
    """Return whether a mask is a comparison, or several joined by and, or, xor, not, views and constant masks."""
    name = operator_name(mask) if isinstance(mask, Node) else ""
    if name in _AND | _OR | _XOR:
        return all(_is_known(model, one) or is_made_of_comparisons(model, one) for one in mask.args[:2])
    if name in _NOT or name in _VIEWS:
        return is_made_of_comparisons(model, mask.args[0])
    return is_comparison(mask)


def _is_known(model: GraphModule, mask: Any) -> bool:
    data = tensor_of(model, mask) if isinstance(mask, Node) else None
    return data is not None and data.dtype == torch.bool


def as_number(model: GraphModule, call: Insert, mask: Any, *, negated: bool = False) -> Node:
    """Return a mask that is made of comparisons as numbers."""
    if _is_known(model, mask):
        data = tensor_of(model, mask)
        assert data is not None
        with model.graph.inserting_before(call.node):
            return add_constant(model, "_chosen", (data ^ negated).to(torch.float32))
    name = operator_name(mask)
    if name in _NOT:
        return as_number(model, call, mask.args[0], negated=not negated)
    if name in _VIEWS:
        return call(mask.target, as_number(model, call, mask.args[0], negated=negated), *mask.args[1:])
    if name in _XOR:
        sides = []
        for flip in (False, True):
            one = as_number(model, call, mask.args[0], negated=negated != flip)
            sides.append(_join(call, _aten.mul.Tensor, one, as_number(model, call, mask.args[1], negated=not flip)))
        return _join(call, _aten.maximum.default, *sides)
    if name in _AND | _OR:
        first, second = (as_number(model, call, one, negated=negated) for one in mask.args[:2])
        return _join(call, _aten.mul.Tensor if (name in _AND) != negated else _aten.maximum.default, first, second)
    condition = with_a_number(call, mask)
    return call(_aten.where.Scalar, condition, *((0.0, 1.0) if negated else (1.0, 0.0)))


def _join(call: Insert, target: Any, one: Node, other: Node) -> Node:
    made = call(target, one, other)
    made.meta[MASK_KEY] = True
    return made
