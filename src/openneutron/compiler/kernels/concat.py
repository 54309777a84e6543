"""CONCATENATION: each input becomes a part of the output, which is an alias inside it."""

from __future__ import annotations

from openneutron.compiler.kernels import lut, serves
from openneutron.compiler.kernels import slice as slice_kernel
from openneutron.compiler.kernels.common import check_quantized, not_empty
from openneutron.compiler.kernels.copy import copy_node
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import all_moved_or_index_type, fold_around, same_q
from openneutron.compiler.l1 import ITEM_BYTES, Alias, Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers import tables
from openneutron.compiler.numbers.strides import dense
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.litert.table_composite import ENTRIES
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no

Shape4 = tuple[int, int, int, int]
_SLICED_BYTES = 2  # of the elements that the slice kernel moves; indices are wider


def part_of(state: Legalizer, root: int, whole: Shape4, axis: int, first: int, count: int, name: str) -> int:
    """Return a value that is part of `root`, seen as `whole`: elements [first, first + count) along `axis`."""
    v = state.graph.values[root]
    strides = [step * ITEM_BYTES[v.dtype] for step in dense(whole)]
    shape = (*whole[:axis], count, *whole[axis + 1 :])
    alias = Alias(root, first * strides[axis], strides[0], strides[1], strides[2])
    return state.temporary(name, shape, v.dtype, v.scale, v.zero_point, alias)  # type: ignore[arg-type]


def emit_part(state: Legalizer, source: int, part: int) -> None:
    """Emit a copy of a value to a part with the same number of elements."""
    x = reshape(state, source, state.graph.values[part].shape)
    if ITEM_BYTES[state.graph.values[x].dtype] > _SLICED_BYTES:
        state.emit(copy_node(state.graph, x, part))
        return
    constant = state.graph.values[x].data is not None
    params = slice_kernel.SliceParams((0, 0, 0, 0), (1, 1, 1, 1))
    state.emit(Node(slice_kernel.ABI.name, [x, part], part, params, demand={} if constant else {0: RowDemand()}))


def _axis(op: OpSignature) -> int:
    return int(op.options.axis) if op.options else 0


@limit("inputs must agree in every dimension but the axis")
def shapes_agree(op: OpSignature, target: Target) -> Verdict:
    y, axis = op.outputs[0], _axis(op)
    rank = len(y.shape)
    if not -rank <= axis < rank:
        return no(f"axis {axis} of rank {rank}")
    axis %= rank
    total = 0
    for x in op.inputs:
        assert x is not None
        if len(x.shape) != rank or x.shape[:axis] != y.shape[:axis] or x.shape[axis + 1 :] != y.shape[axis + 1 :]:
            return no(f"input {x.name!r} is {list(x.shape)}, the output {list(y.shape)}")
        total += x.shape[axis]
    return (
        OK if total == y.shape[axis] else no(f"inputs have {total} elements along the axis, the output {y.shape[axis]}")
    )


@limit("CONCATENATION takes no fused activation")
def no_activation(op: OpSignature, target: Target) -> Verdict:
    activation = getattr(op.options, "fusedActivationFunction", 0)
    return OK if activation == 0 else no(f"activation number {activation}")


@limit("INT8 and INT16 inputs must have the output's scale and zero point, INT16 zero point 0")
def requantizes_only_uint8(op: OpSignature, target: Target) -> Verdict:
    y = op.outputs[0]
    if y.dtype is DType.INT16 and y.zero_point:
        return no(
            f"the output is INT16 with zero point {y.zero_point}", hint="quantize 16-bit activations symmetrically"
        )
    for x in op.inputs:
        assert x is not None
        if same_q(x, y):
            continue
        if y.dtype is not DType.UINT8:
            return no(
                f"{x.name!r} is {x.scale:g}/{x.zero_point}, the output {y.scale:g}/{y.zero_point}",
                hint="insert a QUANTIZE in front",
            )
        for tensor in (x, y):
            verdict = check_quantized(tensor)
            if not verdict:
                return verdict
    return OK


@serves(
    "CONCATENATION", limits=(all_moved_or_index_type, not_empty, shapes_agree, no_activation, requantizes_only_uint8)
)
def legalize(state: Legalizer) -> None:
    """Emit one node per input; UINT8 inputs with other parameters pass a table (docs/numerics.md, Concatenation)."""
    op = state.signature
    y = op.outputs[0]
    whole, axis = fold_around(y.shape, _axis(op) % len(y.shape))
    first = 0
    for at, x in enumerate(op.inputs):
        assert x is not None
        count = x.shape[_axis(op) % len(y.shape)]
        part = part_of(state, state.output(), whole, axis, first, count, f"{y.name} part {at}")
        first += count
        if same_q(x, y):
            emit_part(state, state.value(at), part)
            continue
        scaling = tables.Scaling(x.scale, x.zero_point, y.scale, y.zero_point, signed=False)
        source = reshape(state, state.value(at), state.graph.values[part].shape)
        table = tables.requantized_in_float(scaling)
        demand = {} if state.graph.values[source].data is not None else {0: RowDemand()}
        state.emit(Node(lut.ABI.name, [source, table, part], part, lut.LutParams(ENTRIES), demand=demand))
