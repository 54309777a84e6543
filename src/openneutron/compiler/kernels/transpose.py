"""TRANSPOSE of up to rank 8, as a strided copy, or a view where only dimensions of 1 change places."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import emit_copy_or_view, loops_fit
from openneutron.compiler.kernels.movement import constant_argument, numbers, same_moved_type
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import Verdict, limit, no


def _loops(op: OpSignature) -> list[Loop]:
    x, order = op.inputs[0], numbers(op, 1)
    assert x is not None and order is not None
    reads = dense(x.shape)
    order = [axis % len(x.shape) for axis in order]
    shape = [x.shape[axis] for axis in order]
    return [Loop(n, reads[axis], write) for n, axis, write in zip(shape, order, dense(shape), strict=True)]


@limit("the permutation must fit the input and leave at most six groups of dimensions")
def permutation_fits(op: OpSignature, target: Target) -> Verdict:
    x, order = op.inputs[0], numbers(op, 1)
    assert x is not None and order is not None
    rank = len(x.shape)
    if sorted(axis % rank if rank else axis for axis in order) != list(range(rank)):
        return no(f"permutation {order} of shape {list(x.shape)}")
    return loops_fit(_loops(op))


@serves("TRANSPOSE", limits=(same_moved_type, not_empty, constant_argument, permutation_fits))
def legalize(state: Legalizer) -> None:
    """Emit one `copy` node with the input's strides in the output's order."""
    emit_copy_or_view(state, _loops(state.signature))
