"""Strided copies of whole tensors: what TRANSPOSE, TILE and the block rearrangements become.

Both sides are held densely (the strides are the call's own, not the operands'), so a copy does not stream by rows; parts
and steps along the four dimensions are the `slice` kernel's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from openneutron.compiler.l1 import ITEM_BYTES, KernelGraph, Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.strides import Loop, is_plain, merge_loops
from openneutron.errors import InternalError
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, no

RANK = 6  # nested loops of the firmware; block rearrangements of images need six


@dataclass(frozen=True)
class CopyParams:
    """Parameters of a `copy` call."""

    input_offset: int = param("element of the input where the loops start", grows=4)
    output_offset: int = param("element of the output where the loops start", grows=4)
    dims: tuple[int, ...] = param("steps of each loop, outermost first", RANK, grows=2)
    input_strides: tuple[int, ...] = param("elements from step to step in the input, may be negative", RANK, grows=4)
    output_strides: tuple[int, ...] = param("elements from step to step in the output", RANK, grows=4)


ABI = register(
    KernelAbi(
        id=23,
        name="copy",
        abi=1,
        operands=("input", "output"),
        params=CopyParams,
        cost="element",
        meaning="up to six nested loops of copies with strides on both sides, in elements of any type",
        dense=True,
    )
)


def loops_fit(loops: Sequence[Loop]) -> Verdict:
    """Return whether these loops, once merged, fit one copy."""
    count = len(merge_loops(loops))
    return OK if count <= RANK else no(f"it needs {count} nested loops", hint="reshape to fewer dimensions first")


def copy_params(loops: Sequence[Loop], input_offset: int = 0) -> CopyParams:
    """Return the parameters of a copy; unused outer loops have one iteration."""
    ordered = merge_loops(loops)
    if len(ordered) > RANK:
        raise InternalError(f"a copy of {len(ordered)} loops passed its check")
    ordered = [Loop(1, 0, 0)] * (RANK - len(ordered)) + ordered
    return CopyParams(
        input_offset,
        0,
        tuple(loop.count for loop in ordered),
        tuple(loop.read for loop in ordered),
        tuple(loop.write for loop in ordered),
    )


def emit_copy(state: Legalizer, source: int, output: int, loops: Sequence[Loop], input_offset: int = 0) -> None:
    """Emit one `copy` node between two dense values."""
    state.emit(Node(ABI.name, [source, output], output, copy_params(loops, input_offset)))


def emit_copy_or_view(state: Legalizer, loops: Sequence[Loop]) -> None:
    """Emit a copy from input 0 to the output by loops, or a view when no element moves."""
    from openneutron.compiler.kernels.views import bind_view

    if is_plain(merge_loops(loops), prod(state.signature.outputs[0].shape)):
        bind_view(state)
    else:
        emit_copy(state, state.value(0), state.output(), loops)


def copy_node(graph: KernelGraph, source: int, output: int) -> Node:
    """Return a node that copies one value to another of the same type and size; either may be a strided alias."""
    loops: list[Loop] = []
    (n, h, w, _), strides = graph.values[source].shape, (_strides(graph, source), _strides(graph, output))
    for count, read, write in zip((n, h, w), *strides, strict=True):
        loops.append(Loop(count, read, write))
    loops.append(Loop(graph.values[source].shape[3], 1, 1))
    return Node(ABI.name, [source, output], output, copy_params(loops))


def _strides(graph: KernelGraph, value: int) -> tuple[int, int, int]:
    """Return the elements between images, rows and pixels of a value."""
    v = graph.values[value]
    if v.alias is not None:
        item = ITEM_BYTES[v.dtype]
        return v.alias.plane // item, v.alias.pitch // item, v.alias.pixel // item
    _, h, w, c = v.shape
    return h * w * c, w * c, c
