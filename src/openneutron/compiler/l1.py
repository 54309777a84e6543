"""L1, the kernel graph: one node is one kernel with integer parameters; NHWC; views and aliases are explicit.

All fusing happens here. A value is a 4-D tensor [batch, height, width, channels]; tensors of other ranks are folded into
that shape by the kernel that makes them (the trailing dimension stays the channels).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.errors import InternalError
from openneutron.microcode.encode import align
from openneutron.microcode.table import ElementType, Rounding

ITEM_BYTES = {
    ElementType.INT8: 1, ElementType.UINT8: 1, ElementType.INT16: 2, ElementType.INT32: 4,
    ElementType.INT64: 8, ElementType.FLOAT32: 4, ElementType.BOOL: 1,
}  # fmt: skip


class Alias(NamedTuple):
    """A value stored inside another one: element (n, y, x, c) is at offset + n*plane + y*pitch + x*pixel + c*item."""

    root: int
    offset: int
    plane: int
    pitch: int
    pixel: int


@dataclass
class Value:
    """A tensor of the kernel graph. `tensor` is its L0 tensor index, -1 for one the compiler made.

    `data` makes it a constant: it is stored in the weights block and never written. Row y of an `accumulator` is the state
    after input row y; only the newest row exists.
    """

    name: str
    shape: tuple[int, int, int, int]
    dtype: ElementType
    scale: float = 0.0
    zero_point: int = 0
    tensor: int = -1
    alias: Alias | None = None
    data: npt.NDArray[Any] | None = None
    accumulator: bool = False

    @property
    def stored_rows(self) -> int:
        """Rows held when the value is stored whole: an accumulator is one row that every call updates."""
        return 1 if self.accumulator else self.shape[1]

    @property
    def stored_bytes(self) -> int:
        """Bytes held when the value is stored whole."""
        return self.row_bytes if self.accumulator else self.bytes

    @property
    def bytes(self) -> int:
        """Bytes of the value stored densely."""
        n, h, w, c = self.shape
        return n * h * w * c * ITEM_BYTES[self.dtype]

    @property
    def row_bytes(self) -> int:
        """Bytes of one dense row."""
        return self.shape[2] * self.shape[3] * ITEM_BYTES[self.dtype]


class RowDemand(NamedTuple):
    """Which rows of an input one output row needs: lo = y*stride//divide - before, rows [lo, lo+extent) clipped.

    Element-wise: (1, 1, 0, 1). A window of extent e, stride s, top padding p: (s, 1, p, e). Nearest x2: (1, 2, 0, 1).
    """

    stride: int = 1
    divide: int = 1
    before: int = 0
    extent: int = 1

    def rows(self, first: int, last: int, height: int) -> tuple[int, int]:
        """Input rows [lo, hi) that output rows [first, last) need, clipped to the input's height."""
        lo = first * self.stride // self.divide - self.before
        hi = (last - 1) * self.stride // self.divide - self.before + self.extent
        return max(lo, 0), min(max(hi, 0), height)

    def from_bottom(self, height: int, source: int) -> RowDemand:
        """Return the demand with rows counted from the bottom, for an output of `height` and an input of `source` rows."""
        return RowDemand(self.stride, 1, (height - 1) * self.stride + self.extent - source - self.before, self.extent)


@dataclass
class Node:
    """One kernel call on whole tensors.

    `operands` are in the order of the kernel's ABI: an int is a value, an array is constant data for the weights block
    (uint8), None is an absent optional operand. `demand` has one entry per value operand that streams by rows (keyed by
    operand position); a node whose `demand` is None works on whole tensors only. `sources` are L0 operator indices.
    """

    kernel: str
    operands: list[int | npt.NDArray[np.uint8] | None]
    output: int
    params: Any
    rounding: Rounding = Rounding.NONE
    demand: dict[int, RowDemand] | None = None
    macs: int = 0
    sources: tuple[int, ...] = ()
    merge: dict[int, int] = field(
        default_factory=dict
    )  # operand position → number of pixels that are merged into one, side by side in channels
    workspace: int = 0  # bytes of scratch the kernel needs while it runs; operand role "workspace"
    downward: bool = False  # rows must be made from the top down, because a call builds on the one before
    in_place: tuple[int, ...] = ()  # operand positions whose buffer the output may overwrite element by element
    notes: tuple[str, ...] = ()  # what fusing did, for the report
    loop: int = -1  # nodes with the same number are the body of one loop, a row per iteration; -1: none
    upward: bool = False  # the loop runs from the last row to the first

    def kernel_shape(self, position: int, shape: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
        """Return the shape that the kernel gets for a dense operand: `merge` pixels are one wider pixel."""
        n, h, w, c = shape
        m = self.merge.get(position, 1)
        return n, h, w // m, c * m

    def inputs(self) -> list[int]:
        """Return the values that the node reads, without its output."""
        return [o for o in self.operands if isinstance(o, int) and o != self.output]


@dataclass
class State:
    """Bytes that keep their contents from run to run: an input and an output of the graph at the same address.

    `input` and `output` are positions in the graph's inputs and outputs. A kernel with the operand role "state" updates the
    input itself; `output` is then -1. `initial` is what the bytes hold before the first run.
    """

    name: str
    input: int
    output: int
    initial: bytes


@dataclass
class KernelGraph:
    """The whole of L1 for one NeutronGraph. The caller's inputs and outputs come first, then those that are states."""

    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    @property
    def caller_inputs(self) -> list[int]:
        """Inputs that the caller provides."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def caller_outputs(self) -> list[int]:
        """Outputs that the caller receives."""
        return self.outputs[: len(self.outputs) - sum(state.output >= 0 for state in self.states)]

    @property
    def io_bytes(self) -> int:
        """Bytes outside scratch that a run needs: the caller's inputs and outputs, and the states."""
        ends = (*self.caller_inputs, *self.caller_outputs)
        return sum(self.values[v].bytes for v in ends) + sum(len(state.initial) for state in self.states)

    def state_offsets(self) -> list[int]:
        """Return the offset of each state in the state region: one after another, aligned."""
        offsets, at = [], 0
        for state in self.states:
            offsets.append(at)
            at += align(len(state.initial))
        return offsets

    def copy(self) -> KernelGraph:
        """Return a copy that can be changed independently; constant data is shared."""
        nodes = [replace(node, operands=list(node.operands), merge=dict(node.merge)) for node in self.nodes]
        values = [replace(value) for value in self.values]
        return KernelGraph(values, nodes, list(self.inputs), list(self.outputs), list(self.states))

    def add_value(self, value: Value) -> int:
        """Append a value; returns its index."""
        self.values.append(value)
        return len(self.values) - 1

    def root(self, value: int) -> int:
        """Return the value that owns the storage of `value`."""
        alias = self.values[value].alias
        return value if alias is None else alias.root

    def in_row(self, value: int) -> bool:
        """Return whether row y of an alias lies inside row y of its root for every y, as a part of its channels or columns."""
        part = self.values[value]
        a = part.alias
        if a is None:
            return True
        root, (n, h, w, c) = self.values[a.root], part.shape
        end = a.offset + (w - 1) * a.pixel + c * ITEM_BYTES[part.dtype]
        return n == root.shape[0] == 1 and h == root.shape[1] and a.pitch == root.row_bytes and end <= a.pitch

    def producers(self) -> dict[int, int]:
        """Value → node that writes it."""
        return {node.output: at for at, node in enumerate(self.nodes)}

    def consumers(self) -> dict[int, list[int]]:
        """Value → nodes that read it, in order."""
        found: dict[int, list[int]] = {}
        for at, node in enumerate(self.nodes):
            for value in dict.fromkeys(node.inputs()):
                found.setdefault(value, []).append(at)
        return found


def check(graph: KernelGraph) -> None:
    """Raise unless the graph is valid: values are written once and before reads, aliases are one level deep and in bounds."""
    written = set(graph.inputs) | {at for at, value in enumerate(graph.values) if value.data is not None}
    for value_index, value in enumerate(graph.values):
        if value.alias is not None:
            root = graph.values[value.alias.root]
            if root.alias is not None:
                raise InternalError(f"value {value_index} ({value.name}) aliases an alias")
            n, h, w, c = value.shape
            item = ITEM_BYTES[value.dtype]
            a = value.alias
            last = a.offset + (n - 1) * a.plane + (h - 1) * a.pitch + (w - 1) * a.pixel + c * item
            if a.offset < 0 or last > root.bytes:
                raise InternalError(f"alias {value.name} covers bytes to {last} of {root.bytes} in {root.name}")
    for at, node in enumerate(graph.nodes):
        for read in node.inputs():
            if read not in written and graph.root(read) not in written:
                raise InternalError(f"node {at} ({node.kernel}) reads value {read} before it is written")
        if node.output in written and graph.values[node.output].alias is None:
            raise InternalError(f"node {at} ({node.kernel}) writes value {node.output} a second time")
        written.add(node.output)
        written.add(graph.root(node.output))
    for state in graph.states:
        ends = [graph.inputs[state.input], *([graph.outputs[state.output]] if state.output >= 0 else [])]
        if any(graph.values[value].bytes != len(state.initial) for value in ends):
            raise InternalError(f"state {state.name} changes its size")
    for output in graph.outputs:
        if graph.root(output) not in written:
            raise InternalError(f"output {graph.values[output].name} is never written")
