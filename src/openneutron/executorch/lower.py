"""Lowering: quantized Edge nodes become a LiteRT graph; without data the same code yields the signatures to check.

Values between operators are INT8. A dequantize shows the stored value it reads, a quantize with the parameters a value
already has emits nothing, one with other parameters emits a QUANTIZE: a forgotten requantize cannot happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from openneutron.errors import InternalError
from openneutron.executorch.encoding import Constants, Encoding, Rejected, encoding_of, reject
from openneutron.executorch.fx import (
    GETITEM,
    arguments,
    debug_handles,
    is_dequantize,
    is_quantize,
    operator_name,
    shape_of,
    value_of,
)
from openneutron.executorch.layout import Layouts, Order, Value, channels_last, plain
from openneutron.executorch.ops import LoweringRule, lowerings
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model, Quantization
from openneutron.verdict import first_reason


@dataclass
class Lowered:
    """A LiteRT model with what ties it to the program: one entry per operator, input or output."""

    model: Model
    nodes: list[Node]
    debug_handles: list[tuple[int, ...]]
    inputs: list[Node]
    outputs: list[Node]
    input_formats: list[int]
    output_formats: list[int]
    transposes: int = 0


@dataclass
class Lowering:
    """Lowers nodes one by one; `run` does a whole partition."""

    constants: Constants
    convert_inside: bool = False
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    values: dict[Node, Any] = field(default_factory=dict)
    absorbed: set[Node] = field(default_factory=set)
    owners: list[tuple[Node, ...]] = field(default_factory=list)
    wants: dict[Node, str] = field(default_factory=dict)
    current: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        self.layouts = Layouts(self.builder, self.emit, convert_inside=self.convert_inside)

    def run(self, nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]) -> Lowered:
        """Lower `nodes` (in order), which read the stored values `inputs` and produce the stored values `outputs`."""
        inside = set(nodes)
        self._look_ahead(nodes, outputs)
        for node in inputs:
            self._enter(node, inside)
        for node in nodes:
            self._lower(node)
        return self._finish(inputs, outputs)

    def emit(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        """Append a LiteRT operator on behalf of the current node."""
        self.builder.op(code, inputs, outputs, **options)
        self.owners.append(self.current)

    def value(self, node: Node, reader: Node) -> Any:
        """The value behind an argument; constants enter here."""
        if node not in self.values and node in self.constants:
            data = self.constants.array(node)
            dtype = DType(str(data.dtype))
            self.values[node] = self.layouts.constant(node.name, data, dtype)
        if node not in self.values:
            raise reject(
                reader, "float_input", f"its input {node.name} is not quantized",
                "quantize the operator that makes it, or leave this one out",
            )  # fmt: skip
        return self.values[node]

    def sink(self, node: Node, index: int = 0) -> Encoding | None:
        """The parameters with which a node's result is quantized, looking through shapes and activations."""
        for user in node.users:
            if operator_name(user) == GETITEM:
                found = self.sink(user) if user.args[1] == index else None
            elif is_quantize(user):
                found = encoding_of(user, self.constants)
            else:
                rule = lowerings().get(operator_name(user))
                found = self.sink(user) if rule is not None and (rule.shape_only or rule.activation) else None
            if found is not None:
                return found
        return None

    def _enter(self, node: Node, inside: set[Node]) -> None:
        readers = [user for user in node.users if user in inside]
        encodings = {}
        for reader in readers:
            if not is_dequantize(reader):
                raise reject(reader, "float_input", f"its input {node.name} does not come from a dequantize")
            encodings.setdefault(encoding_of(reader, self.constants), reader)
        if len(encodings) > 1:
            raise reject(readers[1], "mixed_encodings", f"{node.name} is dequantized with differing parameters")
        for encoding, reader in encodings.items():
            _check_activation(reader, encoding)
            self.values[node] = self.layouts.program_input(
                node.name, shape_of(node), encoding.dtype, encoding.quantization,
                channels_last=is_channels_last(node),
            )  # fmt: skip

    def _lower(self, node: Node) -> None:
        self.current = (node,)
        name = operator_name(node)
        if is_quantize(node):
            self.values[node] = self._quantize(node)
        elif is_dequantize(node):
            self.values[node] = self._dequantize(node)
        elif name == GETITEM:
            source = self.values[node.args[0]]
            self.values[node] = source[node.args[1]] if isinstance(source, tuple) else source
        elif node in self.absorbed:
            self.values[node] = self.values[_first_input(node)]
        else:
            rule = lowerings().get(name)
            if rule is None:
                raise reject(node, "no_lowering", f"operator {name} has no lowering", "see `openneutron ops`")
            call = Call(self, node, rule)
            verdict = first_reason(rule.limits, call)
            if verdict.reason is not None:
                reason = verdict.reason
                raise reject(node, reason.code, reason.message, reason.hint)
            self.values[node] = rule.lower(call)

    def _quantize(self, node: Node) -> Value:
        source = arguments(node)["input"]
        encoding = encoding_of(node, self.constants)
        value = self.value(source, node)
        if value.is_constant:
            raise reject(node, "constant_result", f"{source.name} is constant, so nothing is left to run")
        _check_activation(node, encoding)
        if value.quantization == encoding.quantization:
            return value
        return self.requantize(value, encoding.quantization, node.name)

    def requantize(self, value: Value, quantization: Quantization, name: str) -> Value:
        """The same numbers with other parameters, in whatever order the value exists."""
        order = self.common_order([value], self.current[0])
        made, tensor = self.layouts.produced(name, value.shape, order, DType.INT8, quantization)
        self.emit("QUANTIZE", [self.layouts.tensor(value, order)], [tensor])
        return made

    def _dequantize(self, node: Node) -> Value:
        source = arguments(node)["input"]
        encoding = encoding_of(node, self.constants)
        if source in self.constants:
            data = self.constants.array(source)
            return self.layouts.constant(source.name, data, encoding.dtype, encoding.quantization)
        value: Value = self.value(source, node)
        if value.quantization != encoding.quantization:
            raise reject(node, "mixed_encodings", f"{source.name} is quantized and dequantized with differing parameters")
        return value

    def common_order(self, values: Sequence[Value], node: Node) -> Order:
        """The order in which an operator on values of one rank needs the fewest bytes transposed."""
        rank = max(value.rank for value in values)
        same = [value for value in values if value.rank == rank and not value.is_constant]
        candidates = {plain(rank), channels_last(rank)}
        for value in same:
            inverse = {axis: dim for dim, axis in enumerate(value.axes) if axis is not None}
            for found in value.storage.tensors.values():
                candidates.update(
                    tuple(inverse[axis] for axis in axes if axis is not None)
                    for axes, _ in found
                    if len(inverse) == rank and set(inverse) == {axis for axis in axes if axis is not None}
                )

        def cost(order: Order) -> tuple[int, int, Order]:
            moved = sum(value.storage.physical(value.storage.key(value.axes)) != () and _elements(value.shape)
                        for value in same if not self.layouts.available(value, order))  # fmt: skip
            wanted = self.wants.get(node) or _native(same)
            return moved, order != (channels_last(rank) if wanted == "channels_last" else plain(rank)), order

        return min(candidates, key=cost)

    def _look_ahead(self, nodes: Sequence[Node], outputs: Sequence[Node]) -> None:
        """For each node, the layout its readers compute in: decides where any layout would do."""
        leaving = set(outputs)
        for node in reversed(nodes):
            wishes = set()
            if node in leaving and is_channels_last(node):
                wishes.add("channels_last")
            for user in node.users:
                rule = lowerings().get(operator_name(user))
                fixed = rule.layout if rule is not None else "any"
                wish = fixed if fixed != "any" else self.wants.get(user, "")
                wishes.add(wish)
            wish = "channels_last" if "channels_last" in wishes else "plain" if "plain" in wishes else ""
            if wish:
                self.wants[node] = wish

    def _finish(self, inputs: Sequence[Node], outputs: Sequence[Node]) -> Lowered:
        taken: set[int] = set()
        used: list[Node] = []
        entering: list[int] = []
        for node in inputs:
            value = self.values.get(node)
            found = [] if value is None else [t for group in value.storage.tensors.values() for _, t in group]
            entry = [tensor for tensor in found if tensor in self.layouts.formats]
            if entry:
                used.append(node)
                entering.append(entry[0])
        leaving: list[int] = []
        formats: list[int] = []
        for node in outputs:
            self.current = (node,)
            tensor, output_format = self.layouts.output(self.values[node], channels_last=is_channels_last(node))
            if tensor in self.layouts.formats or tensor in taken:
                tensor = self._copy(tensor)
            taken.add(tensor)
            leaving.append(tensor)
            formats.append(output_format)
        for node in inputs:
            value = self.values.get(node)
            if value is not None and node not in used and value.storage.tensors:
                entry = [t for group in value.storage.tensors.values() for _, t in group if t in self.layouts.formats]
                used.append(node)
                entering.append(entry[0])
        used, entering = _in_order(inputs, used, entering)
        owners = [_own(nodes) for nodes in self.owners]
        return Lowered(
            model=self.builder.finish(entering, leaving),
            nodes=[nodes[0] for nodes in owners],
            debug_handles=[_handles(nodes) for nodes in owners],
            inputs=used,
            outputs=list(outputs),
            input_formats=[self.layouts.formats[tensor] for tensor in entering],
            output_formats=formats,
            transposes=self.layouts.transposes,
        )

    def _copy(self, tensor: int) -> int:
        """A tensor with the same content: an output may be neither an input nor given twice."""
        source = self.builder.graph.tensors[tensor]
        q = source.quantization
        made = self.builder.tensor(
            self.layouts.unique(f"{source.name}_copy"), source.shape, source.dtype,
            scale=q.scale if q else None, zero_point=q.zero_point if q else None,
        )  # fmt: skip
        shape = self.layouts.shape_tensor(source.shape)
        self.emit("RESHAPE", [tensor, shape], [made], new_shape=list(source.shape))
        return made


class Call:
    """One node being lowered, as an operator file sees it."""

    def __init__(self, lowering: Lowering, node: Node, rule: LoweringRule) -> None:
        self.lowering = lowering
        self.node = node
        self.rule = rule
        self.arguments = arguments(node)
        self.layouts = lowering.layouts

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def value(self, name: str) -> Value:
        """The tensor argument of that name."""
        given = self.arguments[name]
        if not isinstance(given, Node):
            raise self.reject("not_a_tensor", f"its argument {name!r} is {given!r}, not a tensor")
        return self.of(given)

    def of(self, node: Node) -> Value:
        """The value of a node that this call reads."""
        value: Value = self.lowering.value(node, self.node)
        return value

    def activation(self, name: str) -> Value:
        """A tensor argument that must be quantized INT8 and computed at run time."""
        value = self.value(name)
        if value.is_constant or value.quantization is None:
            raise self.reject("constant_input", f"its input {self.arguments[name].name} is a constant")
        return value

    def optional(self, name: str) -> Value | None:
        """A tensor argument that may be absent."""
        return None if self.arguments.get(name) is None else self.value(name)

    def numbers(self, name: str, count: int, default: Sequence[int] = ()) -> tuple[int, ...]:
        """A list argument, repeated to `count` numbers; an empty one is `default`."""
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
        """A dimension counted from the front."""
        return int(given) % max(rank, 1)

    def output_quantization(self, index: int = 0) -> Quantization:
        """Parameters of the result; rejected when something reads it in float."""
        encoding = self.lowering.sink(self.node, index)
        if encoding is None:
            readers = ", ".join(user.name for user in self.node.users) or "nothing"
            raise self.reject(
                "float_result", f"its result is not quantized: {readers} reads it in float", "quantize its readers too"
            )
        _check_activation(self.node, encoding)
        return encoding.quantization

    def tensor(self, value: Value, order: Order) -> int:
        """The LiteRT tensor of a value in the given order."""
        return self.layouts.tensor(value, order)

    def result(
        self, order: Order, quantization: Quantization | None, shape: Sequence[int] | None = None, name: str = "",
        dtype: DType = DType.INT8,
    ) -> tuple[Value, int]:  # fmt: skip
        """A new value and its tensor, by default of this call's shape."""
        logical = self.shape if shape is None else tuple(shape)
        return self.layouts.produced(name or self.node.name, logical, order, dtype, quantization)

    def constant(self, suffix: str, data: Any, dtype: DType, quantization: Quantization | None = None, axis: int = 0) -> int:
        """A constant tensor of its own."""
        import numpy as np

        array = np.asarray(data, dtype.numpy)
        return self.lowering.builder.tensor(
            self.layouts.unique(f"{self.node.name}_{suffix}"), array.shape, dtype,
            scale=quantization.scale if quantization else None,
            zero_point=quantization.zero_point if quantization else None, axis=axis, data=array,
        )  # fmt: skip

    def emit(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        """Append a LiteRT operator."""
        self.lowering.emit(code, inputs, outputs, **options)

    def common_order(self, values: Sequence[Value]) -> Order:
        """The cheapest order for an operator that computes in any."""
        return self.lowering.common_order(values, self.node)

    def absorb(self, node: Node) -> None:
        """Let `node`, the only reader of this call's result, be computed together with it."""
        self.lowering.absorbed.add(node)
        self.lowering.current = (*self.lowering.current, node)

    def reject(self, code: str, message: str, hint: str = "") -> Rejected:
        """The exception to raise when this call cannot be lowered."""
        return reject(self.node, code, message, hint)


def is_channels_last(node: Node) -> bool:
    """Whether the program stores the node's tensor with the channels fastest."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.dim() != 4 or value.is_contiguous():
        return False
    return value.is_contiguous(memory_format=torch.channels_last)


def _check_activation(node: Node, encoding: Encoding) -> None:
    if encoding.dtype is not DType.INT8:
        raise reject(node, "activation_dtype", f"{node.name} stores activations as {encoding.dtype}", "quantize to INT8")
    if encoding.quantization.per_channel:
        raise reject(node, "activation_per_channel", f"{node.name} quantizes activations per channel")
    if (encoding.low, encoding.high) != (-128, 127):
        raise reject(
            node, "activation_range", f"{node.name} clips activations to [{encoding.low}, {encoding.high}]",
            "use the full range [-128, 127]",
        )  # fmt: skip


def _first_input(node: Node) -> Node:
    source = node.args[0]
    if not isinstance(source, Node):
        raise InternalError(f"{node.name} has no tensor input")
    return source


def _own(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without quantize and dequantize where something else is there: they carry their producer's debug handle."""
    own = tuple(node for node in nodes if not is_quantize(node) and not is_dequantize(node))
    return own or nodes


def _handles(nodes: tuple[Node, ...]) -> tuple[int, ...]:
    return tuple(sorted({handle for node in nodes for handle in debug_handles(node)}))


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _native(values: Sequence[Value]) -> str:
    last = any(value.storage.native is not None and value.storage.native != plain(value.rank) for value in values)
    return "channels_last" if last else "plain"


def _in_order(inputs: Sequence[Node], used: list[Node], tensors: list[int]) -> tuple[list[Node], list[int]]:
    by_node = dict(zip(used, tensors, strict=True))
    kept = [node for node in inputs if node in by_node]
    return kept, [by_node[node] for node in kept]
