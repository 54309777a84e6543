"""PACK and UNPACK: tensors as slices of one with a new axis."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.concat import emit_part, part_of
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import (
    all_moved_or_index_type,
    around,
    same_moved_type,
    same_q,
    same_quantization,
)
from openneutron.compiler.kernels.slice import Cut, emit_slice
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


def _axis(op: OpSignature) -> int:
    return int(op.options.axis) if op.options else 0


@limit("PACK puts inputs of one shape along a new axis")
def packs(op: OpSignature, target: Target) -> Verdict:
    y, axis = op.outputs[0], _axis(op)
    rank = len(y.shape)
    if not -rank <= axis < rank:
        return no(f"axis {axis} of rank {rank}")
    axis %= rank
    slice_shape = (*y.shape[:axis], *y.shape[axis + 1 :])
    if y.shape[axis] != len(op.inputs) or any(x is None or x.shape != slice_shape for x in op.inputs):
        return no(f"{len(op.inputs)} inputs do not make {list(y.shape)}")
    return OK


@limit("UNPACK takes one axis apart, and every output keeps scale and zero point")
def unpacks(op: OpSignature, target: Target) -> Verdict:
    x, axis = op.inputs[0], _axis(op)
    assert x is not None
    rank = len(x.shape)
    if not -rank <= axis < rank:
        return no(f"axis {axis} of rank {rank}")
    axis %= rank
    slice_shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if x.shape[axis] != len(op.outputs) or any(y.shape != slice_shape for y in op.outputs):
        return no(f"{list(x.shape)} does not make {len(op.outputs)} outputs")
    return OK if all(same_q(x, y) for y in op.outputs) else no("an output has other parameters than the input")


@serves("PACK", limits=(all_moved_or_index_type, not_empty, packs, same_quantization))
def legalize(state: Legalizer) -> None:
    """Emit one node per input, which writes its slice."""
    y = state.signature.outputs[0]
    whole = around(y.shape, _axis(state.signature) % len(y.shape))
    for at in range(len(state.op.inputs)):
        part = part_of(state, state.output(), whole, 2, at, 1, f"{y.name} slice {at}")
        emit_part(state, state.value(at), part)


@serves("UNPACK", limits=(same_moved_type, not_empty, unpacks))
def legalize_unpack(state: Legalizer) -> None:
    """Emit one node per output, which reads its slice."""
    x = state.signature.inputs[0]
    assert x is not None
    n, outer, size, inner = around(x.shape, _axis(state.signature) % len(x.shape))
    source = reshape(state, state.value(0), (n, outer, size, inner))
    for at in range(len(state.op.outputs)):
        cuts = [Cut(1, 0, 1, 1), Cut(outer, 0, 1, outer), Cut(size, at, 1, 1), Cut(inner, 0, 1, inner)]
        emit_slice(state, source, state.output(at), cuts)
