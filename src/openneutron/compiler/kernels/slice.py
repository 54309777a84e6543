"""SLICE and STRIDED_SLICE, and the kernel behind every part of a tensor: a strided window of four dimensions.

Writing into a larger tensor is the same kernel with an output that is an alias inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.copy import RANK, emit_copy
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import (
    INDICES,
    constant_arguments,
    known_numbers,
    numbers,
    same_moved_or_index_type,
)
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.strides import Loop, dense, merge_loops
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class SliceParams:
    """Parameters of a `slice` call; images, rows, columns, channels in this order."""

    first: tuple[int, ...] = param("input position of the output's first element", 4, grows=2)
    step: tuple[int, ...] = param("input positions from one output element to the next, may be negative", 4)


ABI = register(
    KernelAbi(
        id=30,
        name="slice",
        abi=1,
        operands=("input", "output"),
        params=SliceParams,
        cost="element",
        meaning="output element i is input element first + i * step, in each of four dimensions of 8-bit elements",
    )
)


@dataclass(frozen=True)
class Cut:
    """What is taken from one dimension of `size`: `count` elements from `first` on, `step` apart."""

    size: int
    first: int
    step: int
    count: int


def join_cuts(cuts: Sequence[Cut]) -> list[Cut]:
    """Merge dimensions of a slice: a whole dimension joins the one before it if that one has step 1."""
    result: list[Cut] = []
    for cut in cuts:
        if cut.size == 1:
            continue
        whole = (cut.first, cut.step, cut.count) == (0, 1, cut.size)
        if result and whole and (result[-1].step == 1 or result[-1].count == 1):
            outer = result[-1]
            result[-1] = Cut(outer.size * cut.size, outer.first * cut.size, 1, outer.count * cut.size)
        else:
            result.append(cut)
    return result


def _loops(cuts: Sequence[Cut]) -> tuple[list[Loop], int]:
    reads, writes = dense([cut.size for cut in cuts]), dense([cut.count for cut in cuts])
    loops = [Loop(c.count, c.step * r, w) for c, r, w in zip(cuts, reads, writes, strict=True)]
    return loops, sum(c.first * r for c, r in zip(cuts, reads, strict=True))


def cuts_fit(cuts: Sequence[Cut]) -> Verdict:
    """Return whether this slice fits one kernel call."""
    if len(cuts) <= 4 or len(join_cuts(cuts)) <= 4:
        return OK
    loops, _ = _loops(cuts)
    count = len(merge_loops(loops))
    return OK if count <= RANK else no(f"it needs {count} nested loops", hint="reshape to fewer dimensions first")


def emit_slice(state: Legalizer, source: int, output: int, cuts: Sequence[Cut]) -> None:
    """Copy the cuts of `source` to `output`; up to rank 4, or joined to it, by a kernel that streams by rows."""
    if len(cuts) > 4:
        shorter = join_cuts(cuts)
        if len(shorter) > 4:
            loops, offset = _loops(cuts)
            emit_copy(state, source, output, loops, offset)
            return
        cuts = shorter
    four = [Cut(1, 0, 1, 1)] * (4 - len(cuts)) + [c if c.count > 1 else Cut(c.size, c.first, 1, 1) for c in cuts]
    n, h, w, c = four
    x = reshape(state, source, (n.size, h.size, w.size, c.size))
    y = reshape(state, output, (n.count, h.count, w.count, c.count))
    params = SliceParams(tuple(cut.first for cut in four), tuple(cut.step for cut in four))
    demand: dict[int, RowDemand] | None = {0: RowDemand(h.step, 1, -h.first, 1)} if h.step > 0 else None
    if demand and state.graph.values[x].data is not None:
        demand = {}
    state.emit(Node(ABI.name, [x, y], y, params, demand=demand))


def _slice_cuts(op: OpSignature) -> list[Cut]:
    x, begin, size = op.inputs[0], numbers(op, 1), numbers(op, 2)
    assert x is not None and begin is not None and size is not None
    return [Cut(n, b, 1, n - b if s == -1 else s) for n, b, s in zip(x.shape, begin, size, strict=True)]


def _strided_cuts(op: OpSignature) -> list[Cut] | None:
    """Return one cut per input dimension; None when the masks contradict the rank."""
    x, options = op.inputs[0], op.options
    begin, end, strides = numbers(op, 1), numbers(op, 2), numbers(op, 3)
    assert x is not None and begin is not None and end is not None and strides is not None
    new, ellipsis = options.newAxisMask, options.ellipsisMask
    if bin(ellipsis & ((1 << len(begin)) - 1)).count("1") > 1 or not len(begin) == len(end) == len(strides):
        return None
    named = sum(1 for at in range(len(begin)) if not (ellipsis >> at & 1) and not (new >> at & 1))
    if named > len(x.shape):
        return None
    cuts: list[Cut] = []
    for at, step in enumerate(strides):
        if ellipsis >> at & 1:
            for size in x.shape[len(cuts) : len(cuts) + len(x.shape) - named]:
                cuts.append(Cut(size, 0, 1, size))
            continue
        if new >> at & 1:
            continue
        size = x.shape[len(cuts)]
        if step == 0:
            return None
        first = begin[at]
        if options.shrinkAxisMask >> at & 1:
            first = first + size if first < 0 else first
            if not 0 <= first < size:
                return None
            cuts.append(Cut(size, first, 1, 1))
            continue
        start, stop, step = slice(
            None if options.beginMask >> at & 1 else first, None if options.endMask >> at & 1 else end[at], step
        ).indices(size)
        cuts.append(Cut(size, start, step, len(range(start, stop, step))))
    cuts += [Cut(size, 0, 1, size) for size in x.shape[len(cuts) :]]
    return cuts


def _size(cuts: Sequence[Cut]) -> int:
    total = 1
    for cut in cuts:
        total *= cut.count
    return total


@limit("begin, end and strides must be constants that describe a part of the input with at most six nested loops")
def strided_slice_fits(op: OpSignature, target: Target) -> Verdict:
    verdict = known_numbers(op, 1, 2, 3)
    if not verdict:
        return verdict
    cuts = _strided_cuts(op)
    if cuts is None:
        return no("its masks and bounds do not match the input's shape")
    if getattr(op.options, "offset", False):
        return no("its end is given as an offset", hint="use absolute ends")
    wanted = 1
    for size in op.outputs[0].shape:
        wanted *= size
    if _size(cuts) != wanted:
        return no(f"it takes {_size(cuts)} elements for an output of {wanted}")
    return cuts_fit(cuts)


@limit("begin and size must lie inside the input, with at most six nested loops")
def slice_fits(op: OpSignature, target: Target) -> Verdict:
    x, begin, size = op.inputs[0], numbers(op, 1), numbers(op, 2)
    assert x is not None and begin is not None and size is not None
    if not len(begin) == len(size) == len(x.shape):
        return no(f"{len(begin)} begins and {len(size)} sizes for shape {list(x.shape)}")
    cuts = _slice_cuts(op)
    if any(c.first < 0 or c.count < 1 or c.first + c.count > c.size for c in cuts):
        return no(f"begin {begin} and size {size} for shape {list(x.shape)}")
    if tuple(cut.count for cut in cuts) != op.outputs[0].shape:
        return no(f"it takes {[cut.count for cut in cuts]} for an output of {list(op.outputs[0].shape)}")
    return cuts_fit(cuts)


@serves("SLICE", limits=(same_moved_or_index_type, not_empty, constant_arguments, slice_fits))
def legalize(state: Legalizer) -> None:
    """Emit one `slice` node."""
    _emit(state, _slice_cuts(state.signature))


@serves("STRIDED_SLICE", limits=(same_moved_or_index_type, not_empty, strided_slice_fits))
def legalize_strided(state: Legalizer) -> None:
    """Emit one `slice` node; new and shrunk axes only change the output's shape."""
    cuts = _strided_cuts(state.signature)
    assert cuts is not None
    _emit(state, cuts)


def _emit(state: Legalizer, cuts: Sequence[Cut]) -> None:
    """Emit a `slice`, for indices, whose elements are wider, a `copy`."""
    source, output = state.value(0), state.output()
    if state.signature.outputs[0].dtype in INDICES:
        loops, offset = _loops(cuts)
        emit_copy(state, source, output, loops, offset)
    else:
        emit_slice(state, source, output, cuts)
