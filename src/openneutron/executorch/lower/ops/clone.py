"""Copies: values have no memory layout of their own here, so there is nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.clone.default", "aten.contiguous.default", "aten.dropout.default", "aten.dropout_.default", wide=True)
@annotates("aten.to.dtype_layout", "aten.to.dtype", "aten._to_copy.default", "aten.to.prim_Device", wide=True)
@annotates("aten.detach.default", "aten.alias.default", "aten.lift_fresh_copy.default", wide=True)
def annotate(node: Node, a: Annotator) -> None:
    """Share the quantization parameters of input and output: stored values do not change."""
    if a.is_float(node):
        a.share_parameters(node)


@limit("a copy must not change the type")
def keeps_type(call: Call) -> Verdict:
    """Only copies are supported: a conversion of the type is a computation."""
    asked = call.arguments.get("dtype")
    return OK if asked in (None, torch.float32) else no(f"it converts to {asked}")


@lowers(
    "aten.clone.default", "dim_order_ops._clone_dim_order.default", "dim_order_ops._to_dim_order_copy.default",
    "aten.alias_copy.default", "aten.detach_copy.default", "aten.lift_fresh_copy.default",
    limits=(keeps_type,), shape_only=True,
    cpu="move",
)  # fmt: skip
def lower(call: Call) -> Value:
    """Return the input unchanged: the dim order matters only at the borders of the partition."""
    return call.value("self")
