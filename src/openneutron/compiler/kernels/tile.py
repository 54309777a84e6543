"""TILE: repetition along any dimension, as a copy that reads the same bytes again."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import emit_copy_or_view, loops_fit
from openneutron.compiler.kernels.movement import constant_argument, numbers, same_byte_type
from openneutron.compiler.legalize import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.compiler.strides import Loop, dense
from openneutron.targets import Target
from openneutron.verdict import Verdict, limit, no


def _loops(op: OpSignature) -> list[Loop]:
    x, times = op.inputs[0], numbers(op, 1)
    assert x is not None and times is not None
    reads, writes = dense(x.shape), dense(op.outputs[0].shape)
    loops: list[Loop] = []
    for size, repeat, read, write in zip(x.shape, times, reads, writes, strict=True):
        loops += [Loop(repeat, 0, size * write), Loop(size, read, write)]
    return loops


@limit("there must be one positive multiple per dimension, and at most six nested loops")
def multiples_fit(op: OpSignature, target: Target) -> Verdict:
    x, times = op.inputs[0], numbers(op, 1)
    assert x is not None and times is not None
    expected = tuple(size * repeat for size, repeat in zip(x.shape, times, strict=False))
    if len(times) != len(x.shape) or expected != op.outputs[0].shape or min(times, default=1) < 1:
        return no(f"multiples {times} of shape {list(x.shape)}")
    return loops_fit(_loops(op))


@serves("TILE", limits=(same_byte_type, not_empty, constant_argument, multiples_fit))
def legalize(state: Legalizer) -> None:
    """One `copy` node whose repeating loops do not advance in the input."""
    emit_copy_or_view(state, _loops(state.signature))
