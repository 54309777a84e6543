"""Lower quantized Edge nodes to a LiteRT graph; without data the same code gives the signatures that limits check.

Values between operators are INT8 or INT16. A dequantize stands for the stored value that it reads. A quantize emits nothing if
the value has its parameters already, and a QUANTIZE if not, so that no requantization can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from openneutron.errors import InternalError
from openneutron.executorch import ways_out
from openneutron.executorch.compile_spec import with_flags
from openneutron.executorch.fx import (
    GETITEM,
    arguments,
    debug_handles,
    is_dequantize,
    is_quantize,
    label,
    operator_name,
    shape_of,
    value_of,
)
from openneutron.executorch.lower.call import Call, check_activation
from openneutron.executorch.lower.encoding import (
    DTYPES,
    INDEX_TYPES,
    Constants,
    Encoding,
    encoding_of,
    reject,
)
from openneutron.executorch.lower.unary_table import Tabulated, find_tables, inside_of
from openneutron.executorch.lower.values import Layouts, Order, Value, channels_last, plain
from openneutron.executorch.operators import lowerings
from openneutron.litert.build import GraphBuilder
from openneutron.litert.graph import DType, Model, Quantization
from openneutron.litert.passes.run_passes import PASSES, run_passes
from openneutron.options import Options
from openneutron.verdict import first_reason


@dataclass
class Lowered:
    """A LiteRT model, and the program's nodes behind it: one entry per operator, input or output."""

    model: Model
    nodes: list[Node]
    debug_handles: list[tuple[int, ...]]
    inputs: list[Node]
    outputs: list[Node]
    input_formats: list[int]
    output_formats: list[int]
    passes: dict[str, int] = field(default_factory=dict)

    @property
    def transposes(self) -> int:
        """How many transposes are left after all passes."""
        return sum(op.code == "TRANSPOSE" for op in self.model.main.operators)


@dataclass(frozen=True)
class State:
    """A buffer whose contents stay on the NPU between calls: `read` is its placeholder, `written` dequantizes its new value."""

    name: str
    read: Node
    written: Node

    def borders(self) -> list[Node]:
        """The quantizes and the dequantize between the float buffer and its stored values: nothing runs for them."""
        return [*self.read.users, self.written]


@dataclass(frozen=True)
class Region:
    """Nodes in the order of their graph, the stored values that they read and make, and the buffers that they keep."""

    nodes: Sequence[Node]
    inputs: Sequence[Node]
    outputs: Sequence[Node]
    states: Sequence[State] = ()


def lower(region: Region, constants: Constants, options: Options, *, float_joins: bool = False) -> Lowered:
    """Lower quantized nodes to a LiteRT model and run the L0 passes that `options` does not switch off.

    With `float_joins` a join that is read in float becomes a CONCATENATION of float32, which LiteRT runs on the CPU.

    Example:
        >>> lowered = lower(Region(nodes, inputs, outputs), Constants(program), Options(target="imxrt700"))
        >>> data = write_model(lowered.model)
    """
    # NXP's converter takes no composites.
    tables = options.converter == "open"
    lowered = Lowering(constants, options.use_neutron_for_format_conversion, tables, float_joins).run(region)
    operators = lowered.model.main.operators
    place = {id(op): position for position, op in enumerate(operators)}
    off = set(with_flags(options).passes_off) & set(PASSES)
    before = list(operators)  # keeps the identities alive while passes drop operators
    lowered.passes = run_passes(lowered.model, off)
    kept = [place[id(op)] for op in operators]
    lowered.nodes = [lowered.nodes[position] for position in kept]
    lowered.debug_handles = [lowered.debug_handles[position] for position in kept]
    del before
    return lowered


@dataclass
class Lowering:
    """Lowers nodes one by one; `run` does a whole partition."""

    constants: Constants
    convert_inside: bool = False
    with_tables: bool = True
    float_joins: bool = False
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    values: dict[Node, Any] = field(default_factory=dict)
    absorbed: set[Node] = field(default_factory=set)
    owners: list[tuple[Node, ...]] = field(default_factory=list)
    wants: dict[Node, str] = field(default_factory=dict)
    current: tuple[Node, ...] = ()
    tables: dict[Node, Tabulated] = field(default_factory=dict)
    made_once: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.layouts = Layouts(self.builder, self.emit, convert_inside=self.convert_inside)

    def run(self, region: Region) -> Lowered:
        """Lower the nodes of a region, in order."""
        nodes, inputs, outputs, states = region.nodes, region.inputs, region.outputs, region.states
        inside = set(nodes)
        self._look_ahead(nodes, outputs)
        self.tables = find_tables(nodes, self.constants) if self.with_tables else {}
        tabulated = inside_of(self.tables)
        for node in inputs:
            self._enter(node, inside)
        handles = [self._read_state(state) for state in states]
        for node in nodes:
            if node not in tabulated:
                self._lower(node)
        for state, (handle, order) in zip(states, handles, strict=True):
            self.current = (state.written,)
            self.emit("ASSIGN_VARIABLE", [handle, self.layouts.tensor(self.values[state.written], order)], [])
        return self._finish(inputs, outputs)

    def emit(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> None:
        """Append a LiteRT operator on behalf of the current node."""
        self.builder.op(code, inputs, outputs, **options)
        self.owners.append(self.current)

    def once(self, key: Hashable, make: Callable[[], int]) -> int:
        """Return the tensor that `make` emitted for this key, which several nodes read."""
        if key not in self.made_once:
            self.made_once[key] = make()
        return self.made_once[key]

    def inline(self, owner: Node, given: Mapping[Node, Node], nodes: Sequence[Node]) -> None:
        """Lower nodes of another graph on behalf of `owner`; `given` says what each of its placeholders stands for here."""
        calls = [node for node in nodes if node.op == "call_function"]
        outer, first = self.constants, len(self.owners)
        self.constants = outer.standing_for(given)
        for stand_in, node in given.items():
            if node not in outer:
                self.values[stand_in] = self.value(node, owner)
        self._look_ahead(calls, ())
        tables = find_tables(calls, self.constants) if self.with_tables else {}
        self.tables |= tables
        tabulated = inside_of(tables)
        for node in calls:
            if node not in tabulated:
                self._lower(node)
        self.constants = outer
        self.owners[first:] = [(owner,)] * (len(self.owners) - first)
        self.current = (owner,)

    def value(self, node: Node, reader: Node) -> Any:
        """Return the value of an argument; constants become values here."""
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
        """Return the quantization that the node's result gets, looking through shape operators and activations."""
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
        kind = value_of(node).dtype
        if kind in INDEX_TYPES:
            self.values[node] = self.layouts.program_input(
                node.name, shape_of(node), DTYPES[kind], None, channels_last=False
            )
            return
        readers = [user for user in node.users if user in inside]
        encodings: dict[Encoding, Node] = {}
        for reader in readers:
            if not is_dequantize(reader):
                raise reject(reader, "float_input", f"its input {node.name} does not come from a dequantize")
            encodings.setdefault(encoding_of(reader, self.constants), reader)
        if len(encodings) > 1:
            raise reject(readers[1], "mixed_encodings", f"{node.name} is dequantized with differing parameters")
        for encoding, reader in encodings.items():
            check_activation(reader, encoding)
            self.values[node] = self.layouts.program_input(
                node.name, shape_of(node), encoding.dtype, encoding.quantization,
                channels_last=is_channels_last(node),
            )  # fmt: skip

    def _read_state(self, state: State) -> tuple[int, Order]:
        """A variable for the buffer, in the order its readers compute in: its resource, and that order."""
        encoding = encoding_of(state.written, self.constants)
        check_activation(state.written, encoding)
        shape = shape_of(state.read)
        last = any(self.wants.get(user) == "channels_last" for user in state.read.users)
        order = channels_last(len(shape)) if last else plain(len(shape))
        (scale,), (zero,) = encoding.quantization.scale, encoding.quantization.zero_point
        stored = np.rint(self.constants.first_contents(state.read) / np.float32(scale)) + zero
        initial = np.clip(stored, encoding.low, encoding.high).transpose(order)
        self.current = (state.read,)
        handle = self.builder.variable(state.name, initial, encoding.dtype)
        self.owners.append(self.current)
        self.values[state.read], tensor = self.layouts.produce(
            state.name, shape, order, encoding.dtype, encoding.quantization
        )
        self.emit("READ_VARIABLE", [handle], [tensor])
        return handle, order

    def _lower(self, node: Node) -> None:
        self.current = (node,)
        name = operator_name(node)
        if node in self.tables:
            self.values[node] = self._tabulate(node, self.tables[node])
        elif is_quantize(node):
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
                raise reject(node, "no_lowering", *ways_out.no_lowering(name))
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
        check_activation(node, encoding)
        if (value.quantization, value.storage.dtype) == (encoding.quantization, encoding.dtype):
            return value
        return self.requantize(value, encoding.quantization, node.name, encoding.dtype)

    def _tabulate(self, node: Node, table: Tabulated) -> Value:
        """Lower a quantize whose input is a function of one stored value to a table, in the cheapest order."""
        self.current = (*table.chain, node)
        source: Value = self.value(table.source, node)
        encoding = encoding_of(node, self.constants)
        check_activation(node, encoding)
        order = self.common_order([source], node)
        made, tensor = self.layouts.produce(
            label(table.chain[-1]), source.shape, order, DType.INT8, encoding.quantization
        )
        entries, function = table.entries(node, self.constants), table.text(self.constants)
        self.builder.table(self.layouts.tensor(source, order), entries, tensor, function)
        self.owners.append(self.current)
        return made

    def requantize(self, value: Value, quantization: Quantization, name: str, dtype: DType | None = None) -> Value:
        """Emit a QUANTIZE of the value to other parameters (and type, if given), in the cheapest order."""
        order = self.common_order([value], self.current[0])
        made, tensor = self.layouts.produce(name, value.shape, order, dtype or value.storage.dtype, quantization)
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
            raise reject(
                node, "mixed_encodings", f"{source.name} is quantized and dequantized with differing parameters"
            )
        return value

    def common_order(self, values: Sequence[Value], node: Node, fit: Callable[[Order], Order] | None = None) -> Order:
        """Return the order in which an operator on values of one rank needs the fewest bytes transposed."""
        fitted = fit or (lambda order: order)
        rank = max(value.rank for value in values)
        same = [value for value in values if value.rank == rank and not value.is_constant]
        candidates = {plain(rank), channels_last(rank)}
        for value in same:
            candidates.update(self.layouts.orders(value))
        wanted = self.wants.get(node) or _native(same)
        preferred = fitted(channels_last(rank) if wanted == "channels_last" else plain(rank))

        def cost(order: Order) -> tuple[int, bool, Order]:
            moved = sum(prod(value.shape) for value in same if not self.layouts.available(value, order))
            return moved, order != preferred, order

        return min(map(fitted, candidates), key=cost)

    def _look_ahead(self, nodes: Sequence[Node], outputs: Sequence[Node]) -> None:
        """Find, for each node, the layout its readers compute in; it decides where any layout would be possible."""
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
        leaving: list[int] = []
        formats: list[int] = []
        for node in outputs:
            self.current = (node,)
            tensor, output_format = self.layouts.output(self.values[node], channels_last=is_channels_last(node))
            if tensor in self.layouts.formats or tensor in leaving:
                tensor = self._copy(tensor)
            leaving.append(tensor)
            formats.append(output_format)
        entering = {node: tensor for node in inputs for tensor in self._entries(node)}
        if self.builder.first_contents is not None:
            self.owners.insert(0, self.owners[0])  # CALL_ONCE, which sets the variables
        owners = [_skip_quantization(nodes) for nodes in self.owners]
        return Lowered(
            model=self.builder.finish(list(entering.values()), leaving),
            nodes=[nodes[0] for nodes in owners],
            debug_handles=[_handles(nodes) for nodes in owners],
            inputs=list(entering),
            outputs=list(outputs),
            input_formats=[self.layouts.formats[tensor] for tensor in entering.values()],
            output_formats=formats,
        )

    def _entries(self, node: Node) -> list[int]:
        """Return the tensor of a program input; an empty list if no operator reads the input."""
        value = self.values.get(node)
        found = [] if value is None else [tensor for group in value.storage.tensors.values() for _, tensor in group]
        return [tensor for tensor in found if tensor in self.layouts.formats]

    def _copy(self, tensor: int) -> int:
        """Emit a copy of a tensor, for an output that is also an input or another output."""
        source = self.builder.graph.tensors[tensor]
        q = source.quantization
        made = self.builder.tensor(
            self.layouts.unique(f"{source.name}_copy"), source.shape, source.dtype,
            scale=q.scale if q else None, zero_point=q.zero_point if q else None,
        )  # fmt: skip
        shape = self.layouts.shape_tensor(source.shape)
        self.emit("RESHAPE", [tensor, shape], [made], new_shape=list(source.shape))
        return made


def is_channels_last(node: Node) -> bool:
    """Whether the program stores the node's tensor with the channels fastest."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.dim() != 4 or value.is_contiguous():
        return False
    return value.is_contiguous(memory_format=torch.channels_last)


def _first_input(node: Node) -> Node:
    source = node.args[0]
    if not isinstance(source, Node):
        raise InternalError(f"{node.name} has no tensor input")
    return source


def _skip_quantization(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without quantize and dequantize where something else is there: they carry their producer's debug handle."""
    own = tuple(node for node in nodes if not is_quantize(node) and not is_dequantize(node))
    return own or nodes


def _handles(nodes: tuple[Node, ...]) -> tuple[int, ...]:
    return tuple(sorted({handle for node in nodes for handle in debug_handles(node)}))


def _native(values: Sequence[Value]) -> str:
    last = any(value.storage.native is not None and value.storage.native != plain(value.rank) for value in values)
    return "channels_last" if last else "plain"
