"""The view of one node that operator files use while it is lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.fx import Node

from openneutron.executorch.fx import arguments, label, value_of
from openneutron.executorch.lower.encoding import Encoding, Rejected, reject
from openneutron.executorch.lower.values import Order, Value
from openneutron.litert.graph import DType, Quantization

if TYPE_CHECKING:
    from openneutron.executorch.lower.lowering import Lowering
    from openneutron.executorch.operators import LoweringRule


class Call:
    """One node being lowered, with helpers for operator files."""

    def __init__(self, lowering: Lowering, node: Node, rule: LoweringRule) -> None:
        self.lowering = lowering
        self.node = node
        self.rule = rule
        self.arguments = arguments(node)
        self.layouts = lowering.layouts

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def value(self, name: str) -> Value:
        """Return the tensor argument of that name."""
        given = self.arguments[name]
        if not isinstance(given, Node):
            raise self.reject("not_a_tensor", f"its argument {name!r} is {given!r}, not a tensor")
        return self.of(given)

    def of(self, node: Node) -> Value:
        """Return the value of a node that this call reads."""
        value: Value = self.lowering.value(node, self.node)
        return value

    def activation(self, name: str) -> Value:
        """Return a tensor argument that must be quantized and computed at run time."""
        value = self.value(name)
        if value.is_constant or value.quantization is None:
            raise self.reject("constant_input", f"its input {self.arguments[name].name} is a constant")
        return value

    def quantized_argument(self, name: str) -> Value:
        """Return a quantized tensor argument; it may be constant, such as the first state of a recurrent layer."""
        value = self.value(name)
        return value if value.quantization is not None else self.activation(name)

    def optional(self, name: str) -> Value | None:
        """Return a tensor argument that may be absent."""
        return None if self.arguments.get(name) is None else self.value(name)

    def numbers(self, name: str, count: int, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return a list argument, repeated to `count` numbers; an empty one becomes `default`."""
        given = self.arguments[name]
        numbers = [int(one) for one in given] if isinstance(given, (list, tuple)) else [int(given)]
        numbers = numbers or list(default)
        return tuple(numbers * count if len(numbers) == 1 else numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape of the (first) result."""
        value = value_of(self.node)
        first = value[0] if isinstance(value, (tuple, list)) else value
        return tuple(int(size) for size in first.shape)

    def dim(self, given: int, rank: int) -> int:
        """Return a dimension counted from the front."""
        return int(given) % max(rank, 1)

    def output_quantization(self, index: int = 0) -> Quantization:
        """Return the quantization of the result; reject a result that is read in float."""
        encoding = self.lowering.sink(self.node, index)
        if encoding is None:
            readers = ", ".join(user.name for user in self.node.users) or "nothing"
            raise self.reject(
                "float_result", f"its result is not quantized: {readers} reads it in float", "quantize its readers too"
            )
        check_activation(self.node, encoding)
        return encoding.quantization

    def tensor(self, value: Value, order: Order) -> int:
        """Return the LiteRT tensor of a value in the given order."""
        return self.layouts.tensor(value, order)

    def result(
        self, order: Order, quantization: Quantization | None, shape: Sequence[int] | None = None, name: str = "",
        dtype: DType | None = None,
    ) -> tuple[Value, int]:  # fmt: skip
        """Return a new value and its tensor, by default with this call's shape and the type of its activations."""
        logical = self.shape if shape is None else tuple(shape)
        return self.layouts.produce(name or label(self.node), logical, order, dtype or self.dtype, quantization)

    @property
    def dtype(self) -> DType:
        """The type of the activations this call computes with: inputs and result have one, INT8, INT16 or joined in float."""
        for node in self.node.all_input_nodes:
            value = self.lowering.values.get(node)
            if not isinstance(value, Value) or value.is_constant:
                continue
            if value.quantization is not None or value.storage.dtype is DType.FLOAT32:
                return value.storage.dtype
        return DType.INT8

    def constant(
        self, suffix: str, data: Any, dtype: DType, quantization: Quantization | None = None, axis: int = 0
    ) -> int:
        """Return a new constant tensor."""
        array = np.asarray(data, dtype.numpy)
        return self.lowering.builder.tensor(
            self.layouts.unique(f"{self.node.name}_{suffix}"), array.shape, dtype,
            scale=quantization.scale if quantization else None,
            zero_point=quantization.zero_point if quantization else None, axis=axis, data=array,
        )  # fmt: skip

    def emit(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        """Append a LiteRT operator."""
        self.lowering.emit(code, inputs, outputs, **options)

    def common_order(self, values: Sequence[Value], fit: Callable[[Order], Order] | None = None) -> Order:
        """Return the cheapest order for an operator that computes in any order, or in any that `fit` returns."""
        return self.lowering.common_order(values, self.node, fit)

    def absorb(self, node: Node) -> None:
        """Mark `node`, the only reader of this call's result, as computed by the operator of this call."""
        self.lowering.absorbed.add(node)
        self.lowering.current = (*self.lowering.current, node)

    def reject(self, code: str, message: str, hint: str = "") -> Rejected:
        """Return the exception to raise when this call cannot be lowered."""
        return reject(self.node, code, message, hint)


def check_activation(node: Node, encoding: Encoding) -> None:
    """Reject values that no kernel accepts as activations: only INT8 or INT16, per tensor, over the full range, pass."""
    if encoding.dtype not in (DType.INT8, DType.INT16):
        raise reject(
            node, "activation_dtype", f"{node.name} stores activations as {encoding.dtype}", "quantize to INT8 or INT16"
        )
    if encoding.dtype is DType.INT16 and any(encoding.quantization.zero_point):
        raise reject(
            node, "activation_zero_point", f"{node.name} stores INT16 with a zero point", "quantize it symmetrically"
        )
    limits = np.iinfo(encoding.dtype.numpy)
    if encoding.quantization.per_channel:
        raise reject(node, "activation_per_channel", f"{node.name} quantizes activations per channel")
    if (encoding.low, encoding.high) != (limits.min, limits.max):
        raise reject(
            node, "activation_range", f"{node.name} clips activations to [{encoding.low}, {encoding.high}]",
            f"use the full range [{limits.min}, {limits.max}]",
        )  # fmt: skip
