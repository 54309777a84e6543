"""Operators that give a tensor another shape: view, reshape, flatten, squeeze, unsqueeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.layout import Value, plain
from openneutron.executorch.ops import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.call import Call
    from openneutron.executorch.quantizer.annotator import Annotator


@annotates(
    "aten.view.default", "aten.reshape.default", "aten.flatten.using_ints", "aten.unflatten.int",
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.unsqueeze.default", "aten._unsafe_view.default",
)  # fmt: skip
def annotate(node: Node, a: Annotator) -> None:
    """Stored values do not change, so their parameters do not either."""
    a.shared(node)


@lowers("aten.view_copy.default", "aten.squeeze_copy.dims", "aten.squeeze_copy.dim", "aten.unsqueeze_copy.default",
        "aten.view.default", shape_only=True)  # fmt: skip
def lower(call: Call) -> Value:
    """Nothing when only dimensions of size 1 come or go, else RESHAPE of the plain order; constants are reshaped here."""
    x = call.value("self")
    same = x.with_ones(call.shape)
    if same is not None:
        return same
    if x.is_constant:
        return reshaped_constant(call, x)
    value, made = call.result(plain(len(call.shape)), x.quantization)
    shape = call.layouts.shape_tensor(call.shape)
    call.emit("RESHAPE", [call.tensor(x, plain(x.rank)), shape], [made], new_shape=list(call.shape))
    return value


def reshaped_constant(call: Call, x: Value) -> Value:
    """A constant under another shape; per-channel parameters do not survive that."""
    if x.quantization is not None and x.quantization.per_channel:
        raise call.reject("per_channel_view", "it reshapes a constant that is quantized per channel")
    return call.layouts.constant(x.storage.name, x.array().reshape(call.shape), x.storage.dtype, x.quantization)
