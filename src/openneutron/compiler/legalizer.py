"""The interface that kernel files use to turn one operator into L1 nodes: values, constants, views and emitted nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.compiler.l1 import Alias, KernelGraph, Node, State, Value
from openneutron.compiler.signature import OpSignature
from openneutron.compiler.variables import Variables, first_contents
from openneutron.errors import InternalError
from openneutron.litert.graph import DType, Graph, Operator
from openneutron.machine.targets import Target
from openneutron.microcode.table import ElementType

ELEMENT_TYPES = {
    DType.INT8: ElementType.INT8, DType.UINT8: ElementType.UINT8, DType.INT16: ElementType.INT16,
    DType.INT32: ElementType.INT32, DType.INT64: ElementType.INT64, DType.FLOAT32: ElementType.FLOAT32,
    DType.BOOL: ElementType.BOOL,
}  # fmt: skip


def shape4(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Fold a shape into [batch, height, width, channels]; trailing dimensions keep their places.

    Rank above 4 folds the leading dimensions into the batch, rank below 4 is padded with ones in front.
    """
    if len(shape) > 4:
        return (int(np.prod(shape[:-3])), *shape[-3:])  # type: ignore[return-value]
    return (1,) * (4 - len(shape)) + tuple(shape)  # type: ignore[return-value]


@dataclass
class _Kept:
    """The values of a variable at the start of a run and after the operators so far; -1 until one is read."""

    initial: npt.NDArray[Any] | None
    first: int = -1
    now: int = -1
    in_place: bool = False


@dataclass
class Legalizer:
    """Turns operators into nodes one by one; `op` and `signature` are those of the current operator."""

    source: Graph
    target: Target
    graph: KernelGraph = field(default_factory=KernelGraph)
    values: dict[int, int] = field(default_factory=dict)  # L0 tensor → L1 value
    variables: Variables = field(default_factory=Variables)
    kept: dict[str, _Kept] = field(default_factory=dict)  # variables that this graph reads or assigns
    op: Operator = field(default_factory=lambda: Operator("", [], []))
    op_index: int = -1
    signature: OpSignature = field(default_factory=lambda: OpSignature("", (), (), None))

    def value(self, position: int) -> int:
        """Return the L1 value of input `position`; constants become constant values."""
        tensor = self.op.inputs[position]
        if tensor not in self.values:
            data = self.source.tensors[tensor].data
            if data is None:
                raise InternalError(f"operator {self.op_index} reads tensor {tensor} before it is written")
            self.add_tensor(tensor, data)
        return self.values[tensor]

    def output(self, position: int = 0) -> int:
        """Return the L1 value of output `position`, created on first use."""
        tensor = self.op.outputs[position]
        if tensor not in self.values:
            self.add_tensor(tensor, None)
        return self.values[tensor]

    def bind(self, position: int, value: int) -> None:
        """Make output `position` an existing value (for views)."""
        self.values[self.op.outputs[position]] = value

    def has(self, position: int) -> bool:
        """True when optional input `position` is given."""
        return position < len(self.op.inputs) and self.op.inputs[position] >= 0

    def constant(self, position: int) -> npt.NDArray[Any]:
        """Data of constant input `position`."""
        data = self.source.tensors[self.op.inputs[position]].data
        if data is None:
            raise InternalError(f"input {position} of operator {self.op_index} ({self.op.code}) is not constant")
        return data

    def temporary(
        self, name: str, shape: tuple[int, int, int, int], dtype: ElementType = ElementType.INT8,
        scale: float = 0.0, zero_point: int = 0, alias: Alias | None = None,
    ) -> int:  # fmt: skip
        """Add a value that is no L0 tensor."""
        return self.graph.add_value(Value(name, shape, dtype, scale, zero_point, alias=alias))

    def view(self, value: int, shape: tuple[int, int, int, int], name: str, tensor: int = -1) -> int:
        """Add a view: the same dense bytes under another shape."""
        source = self.graph.values[value]
        root = self.graph.root(value)
        base = source.alias.offset if source.alias else 0
        _, h, w, c = shape
        item = source.bytes // max(int(np.prod(source.shape)), 1)
        alias = Alias(root, base, h * w * c * item, w * c * item, c * item)
        made = Value(name, shape, source.dtype, source.scale, source.zero_point, tensor, alias)
        return self.graph.add_value(made)

    def variable(self, resource: int, tensor: int) -> int:
        """Return the current value of a resource tensor's variable; `tensor` is the L0 tensor that it is read into."""
        name = self.variables.of_tensor[resource]
        kept = self.kept.setdefault(name, _Kept(self.variables.by_name[name].initial))
        if kept.now < 0:
            kept.first = kept.now = self._make_value(tensor, None)
        return kept.now

    def assign(self, resource: int, value: int) -> None:
        """Set the value of a resource tensor's variable for all operators that follow."""
        name = self.variables.of_tensor[resource]
        self.kept.setdefault(name, _Kept(self.variables.by_name[name].initial)).now = value

    def variable_tensor(self, position: int) -> int:
        """The variable tensor at input `position`, which the operator's kernel updates in place."""
        tensor = self.op.inputs[position]
        name = f"tensor {tensor}"
        if name not in self.kept:
            made = self._make_value(tensor, None)
            self.kept[name] = _Kept(first_contents(self.source.tensors[tensor]), made, made, in_place=True)
        return self.kept[name].first

    def settle(self) -> None:
        """Add the variables as states, after the caller's inputs and outputs."""
        for name, kept in self.kept.items():
            if kept.first < 0:
                continue  # assigned but never read: it has no effect
            if kept.initial is None:
                raise InternalError(f"variable {name} has no first contents")
            if kept.first == kept.now and not kept.in_place:
                self.graph.values[kept.first].data = kept.initial  # read but never assigned: a constant
                continue
            output = -1
            if not kept.in_place:
                output = len(self.graph.outputs)
                self.graph.outputs.append(kept.now)
            initial = np.ascontiguousarray(kept.initial).tobytes()
            self.graph.states.append(State(name, len(self.graph.inputs), output, initial))
            self.graph.inputs.append(kept.first)

    def emit(self, node: Node) -> None:
        """Append a node made for the current operator."""
        node.sources = node.sources or (self.op_index,)
        self.graph.nodes.append(node)

    def add_tensor(self, tensor: int, data: npt.NDArray[Any] | None) -> None:
        """Make the value of an L0 tensor, constant when `data` is given."""
        self.values[tensor] = self._make_value(tensor, data)

    def _make_value(self, tensor: int, data: npt.NDArray[Any] | None) -> int:
        """Create a value for an L0 tensor."""
        t = self.source.tensors[tensor]
        scale, zero = (t.quantization.scale[0], t.quantization.zero_point[0]) if t.quantization else (0.0, 0)
        made = Value(t.name, shape4(t.shape), ELEMENT_TYPES[t.dtype], scale, zero, tensor, data=data)
        return self.graph.add_value(made)
