"""SPLIT and SPLIT_V: one slice per output."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import ACTIVATIONS, not_empty
from openneutron.compiler.kernels.movement import numbers
from openneutron.compiler.kernels.slice import Cut, cuts_fit, emit_slice
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


def _data(op: OpSignature) -> tuple[TensorSignature | None, list[int] | None]:
    """Return the tensor that is split and the axis: SPLIT's inputs are (axis, data), SPLIT_V's are (data, sizes, axis)."""
    return (op.input(1), numbers(op, 0)) if op.code == "SPLIT" else (op.input(0), numbers(op, 2))


def _cuts(x: TensorSignature, axis: int, first: int, count: int) -> list[Cut]:
    return [Cut(size, first, 1, count) if at == axis else Cut(size, 0, 1, size) for at, size in enumerate(x.shape)]


@limit("the split tensor and all outputs must be INT8, UINT8 or INT16, of one type")
def one_type(op: OpSignature, target: Target) -> Verdict:
    x, _ = _data(op)
    if x is None or x.dtype not in ACTIVATIONS:
        return no(f"the split tensor is {x.dtype if x else 'absent'}")
    other = next((y for y in op.outputs if y.dtype is not x.dtype), None)
    return OK if other is None else no(f"output {other.name!r} is {other.dtype}")


@limit("the axis must be constant and the outputs must follow each other along it")
def outputs_follow(op: OpSignature, target: Target) -> Verdict:
    x, axes = _data(op)
    assert x is not None
    if axes is None or len(axes) != 1 or not -len(x.shape) <= axes[0] < len(x.shape):
        return no(f"axis is {axes}")
    axis = axes[0] % len(x.shape)
    first = 0
    for y in op.outputs:
        if len(y.shape) != len(x.shape):
            return no(f"output {y.name!r} is {list(y.shape)}, the input {list(x.shape)}")
        cuts = _cuts(x, axis, first, y.shape[axis])
        first += y.shape[axis]
        if tuple(cut.count for cut in cuts) != y.shape:
            return no(f"output {y.name!r} is {list(y.shape)}, the input {list(x.shape)}")
        verdict = cuts_fit(cuts)
        if not verdict:
            return verdict
    return OK if first == x.shape[axis] else no(f"outputs take {first} of {x.shape[axis]} elements")


@serves("SPLIT", "SPLIT_V", limits=(not_empty, one_type, outputs_follow))
def legalize(state: Legalizer) -> None:
    """Emit one `slice` node per output."""
    x, axes = _data(state.signature)
    assert x is not None and axes is not None
    axis = axes[0] % len(x.shape)
    source = state.value(1 if state.op.code == "SPLIT" else 0)
    first = 0
    for at, y in enumerate(state.signature.outputs):
        emit_slice(state, source, state.output(at), _cuts(x, axis, first, y.shape[axis]))
        first += y.shape[axis]
