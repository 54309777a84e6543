"""TILE: repetition along any dimension, as a copy that reads the same bytes again."""

from __future__ import annotations

from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import emit_copy, emit_copy_or_view, loops_fit
from openneutron.compiler.kernels.movement import constant_argument, numbers, same_moved_type
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


def _loops(op: OpSignature) -> list[Loop]:
    x, times = op.inputs[0], numbers(op, 1)
    assert x is not None and times is not None
    reads, writes = dense(x.shape), dense(op.outputs[0].shape)
    loops: list[Loop] = []
    for size, repeat, read, write in zip(x.shape, times, reads, writes, strict=True):
        loops += [Loop(repeat, 0, size * write), Loop(size, read, write)]
    return loops


@limit("there must be one positive multiple per dimension")
def multiples_fit(op: OpSignature, target: Target) -> Verdict:
    x, times = op.inputs[0], numbers(op, 1)
    assert x is not None and times is not None
    expected = tuple(size * repeat for size, repeat in zip(x.shape, times, strict=False))
    if len(times) != len(x.shape) or expected != op.outputs[0].shape or min(times, default=1) < 1:
        return no(f"multiples {times} of shape {list(x.shape)}")
    return OK


def _emit_one_by_one(state: Legalizer) -> None:
    """Emit one copy per repeated dimension, the innermost first so that the large copies come last."""
    x, times, y = state.signature.inputs[0], numbers(state.signature, 1), state.signature.outputs[0]
    assert x is not None and times is not None
    source, shape = state.value(0), list(x.shape)
    repeats = [at for at in reversed(range(len(shape))) if times[at] > 1]
    for at in repeats:
        before, inner = prod(shape[:at]), prod(shape[at:])
        shape[at] *= times[at]
        value = state.graph.values[source]
        target = state.output()
        if at != repeats[-1]:
            target = state.temporary(
                f"{y.name} (axis {at})", shape4(tuple(shape)), value.dtype, value.scale, value.zero_point
            )
        loops = [Loop(before, inner, inner * times[at]), Loop(times[at], 0, inner), Loop(inner, 1, 1)]
        emit_copy(state, source, target, loops)
        source = target


@serves("TILE", limits=(same_moved_type, not_empty, constant_argument, multiples_fit))
def legalize(state: Legalizer) -> None:
    """Emit one `copy` node whose repeating loops do not advance in the input, or several if they nest too deeply."""
    loops = _loops(state.signature)
    if loops_fit(loops):
        emit_copy_or_view(state, loops)
    else:
        _emit_one_by_one(state)
