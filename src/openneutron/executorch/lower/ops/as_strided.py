"""as_strided with the strides that the tensor has already; PyTorch emits one after pooling of channels-last images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import value_of
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@limit("as_strided must keep shape and strides")
def changes_nothing(call: Call) -> Verdict:
    """Strides of dimensions of size 1 have no meaning."""
    before = value_of(call["self"])
    size, stride = list(call["size"]), list(call["stride"])
    same = size == list(before.shape) and not call["storage_offset"]
    same = same and all(n == 1 or s == old for n, s, old in zip(size, stride, before.stride(), strict=True))
    return OK if same else no(f"it makes {size} with strides {stride}", hint="use slices, views or permutations")


@lowers("aten.as_strided_copy.default", limits=(changes_nothing,), shape_only=True, cpu="free")
def lower(call: Call) -> Value:
    """Return the input unchanged."""
    return call.value("self")
