"""DYNAMIC_UPDATE_SLICE: a box of a tensor replaced, at a place known at run time (docs/numerics.md, Runtime positions)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.check_indices import LIMITS, checked_indices, index_type
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.kernels.movement import numbers, same_moved_type
from openneutron.compiler.l1 import Node
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no

_DIMENSIONS = 4  # that a call tells apart, each with a start of its own


@dataclass(frozen=True)
class UpdateSliceParams:
    """Parameters of an `update_slice` call; all operands are dense."""

    dims: tuple[int, ...] = param("sizes of the tensor, outermost first", _DIMENSIONS, grows=4)
    box: tuple[int, ...] = param("sizes of the box that is replaced", _DIMENSIONS, grows=4)
    entry: tuple[int, ...] = param("which of `starts` is the box's start along each, -1: it starts at 0", _DIMENSIONS)
    slice_bytes: int = param("bytes behind the last of these dimensions", grows=4)


ABI = register(
    KernelAbi(
        id=48,
        name="update_slice",
        abi=1,
        operands=("input", "update", "starts", "output"),
        params=UpdateSliceParams,
        cost="update",
        meaning="a copy of the input with a box replaced by `update`, at INT32 or INT64 `starts`; in place where output and "
        "input are the same bytes",
        dense=True,
    )
)


def _operands(op: OpSignature) -> tuple[TensorSignature, TensorSignature, TensorSignature]:
    whole, update, starts = op.inputs[:3]
    assert whole is not None and update is not None and starts is not None
    return whole, update, starts


@limit("the update must have the tensor's type, scale, zero point and rank, and fit inside it")
def update_fits(op: OpSignature, target: Target) -> Verdict:
    whole, update, starts = _operands(op)
    y = op.outputs[0]
    if update.dtype is not whole.dtype or whole.shape != y.shape or len(update.shape) != len(whole.shape):
        return no(f"{update.dtype} {list(update.shape)} in {whole.dtype} {list(whole.shape)}, output {list(y.shape)}")
    if any(u > w for u, w in zip(update.shape, whole.shape, strict=True)):
        return no(f"{list(update.shape)} in {list(whole.shape)}")
    if prod(starts.shape) != len(whole.shape) or not whole.shape:
        return no(f"{prod(starts.shape)} starts for {len(whole.shape)} dimensions")
    for one in (whole, update):
        if (one.scale, one.zero_point) != (y.scale, y.zero_point):
            return no(
                f"{one.name!r} is {one.scale:g}/{one.zero_point}, the output {y.scale:g}/{y.zero_point}",
                hint="insert a QUANTIZE in front",
            )
    return OK


@limit(f"the box may differ from the tensor in dimensions that fold to {_DIMENSIONS}, of at most {LIMITS}")
def box_folds(op: OpSignature, target: Target) -> Verdict:
    whole, update, _ = _operands(op)
    count = len(_fold(whole.shape, update.shape)[0])
    if count <= _DIMENSIONS and len(whole.shape) <= LIMITS:
        return OK
    return no(f"{list(update.shape)} in {list(whole.shape)}", hint="reshape to fewer dimensions first")


@limit("constant starts must leave the box inside the tensor")
def starts_inside(op: OpSignature, target: Target) -> Verdict:
    whole, update, _ = _operands(op)
    for at, start in enumerate(numbers(op, 2) or ()):
        if not 0 <= start <= whole.shape[at] - update.shape[at]:
            return no(f"start {start} of {update.shape[at]} in {whole.shape[at]} along dimension {at}")
    return OK


def _fold(whole: tuple[int, ...], box: tuple[int, ...]) -> tuple[list[tuple[int, int, int]], int]:
    """Return dimensions as (size, box, position of the start, -1: none), and the elements behind them."""
    found: list[tuple[int, int, int]] = []
    for at, (size, part) in enumerate(zip(whole, box, strict=True)):
        if size == part == 1:
            continue
        if size != part:
            found.append((size, part, at))
        elif found and found[-1][2] < 0:
            found[-1] = (found[-1][0] * size, found[-1][1] * size, -1)
        else:
            found.append((size, size, -1))
    inner = found.pop()[0] if found and found[-1][2] < 0 else 1
    return found, inner


@serves(
    "DYNAMIC_UPDATE_SLICE",
    limits=(same_moved_type, not_empty, index_type, update_fits, box_folds, starts_inside),
)
def legalize(state: Legalizer) -> None:
    """Emit one node on whole tensors; positions known only at run time are checked first."""
    whole, update, _ = _operands(state.signature)
    found, inner = _fold(whole.shape, update.shape)
    dims = [(1, 1, -1)] * (_DIMENSIONS - len(found)) + found
    sizes, box, entry = (tuple(one[at] for one in dims) for at in range(3))
    limits = tuple(size - part + 1 for size, part in zip(whole.shape, update.shape, strict=True))
    params = UpdateSliceParams(sizes, box, entry, inner * whole.dtype.itemsize)
    starts, output = checked_indices(state, 2, limits), state.output()
    state.emit(Node(ABI.name, [state.value(0), state.value(1), starts, output], output, params, in_place=(0,)))
