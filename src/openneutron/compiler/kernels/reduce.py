"""MEAN, SUM, REDUCE_MAX and REDUCE_MIN over any axes; a copy reorders dimensions only if more than four groups remain."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, range_of
from openneutron.compiler.kernels.copy import emit_copy, loops_fit
from openneutron.compiler.kernels.elementwise import one_byte_input, one_input_type, rescale_fits, reshape
from openneutron.compiler.kernels.movement import Shape4, constant_argument, numbers, same_moved_type, same_quantization
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.multipliers import multiplier
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

_MODES = {"MEAN": 0, "SUM": 0, "REDUCE_MAX": 1, "REDUCE_MIN": 2}
# By bytes per element: 2^23 values of 8 bits, offset by a zero point, or 2^15 of 16 still sum to less than 2^31.
_MAX_ELEMENTS = {1: 1 << 23, 2: 1 << 15}


@dataclass(frozen=True)
class ReduceParams:
    """Parameters of a `reduce` call; modes 1 and 2 use only the first two."""

    axes: int = param("bits: 1 batch, 2 height, 4 width, 8 channels")
    mode: int = param("0 sum, 1 maximum, 2 minimum")
    offset: int = param("added to the sum: minus zero point times elements", least=4)
    multiplier: int = param("brings the sum to the output's scale, divided by the elements for a mean")
    shift: int = param("power of two that goes with it")
    output_zero: int = param("added last")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=27,
        name="reduce",
        abi=2,
        operands=("input", "steps?", "output"),
        params=ReduceParams,
        cost="reduce",
        meaning="sum, maximum or minimum over any of four dimensions of values of 8 or 16 bits; the output has size 1 there. "
        "With steps, 255 INT32, a sum gives the smallest output plus the number of steps that it reaches",
    )
)


@dataclass(frozen=True)
class _Plan:
    """The reduction in four dimensions: input and output shape, and which are reduced.

    `gather` are the loops of a copy that comes first, where reduced and kept dimensions alternate too often.
    """

    inner: Shape4
    outer: Shape4
    axes: tuple[int, ...]
    gather: tuple[Loop, ...] = ()


def _axes(op: OpSignature) -> set[int] | None:
    x, given = op.inputs[0], numbers(op, 1)
    assert x is not None and given is not None
    rank = len(x.shape)
    if any(not -rank <= axis < rank for axis in given):
        return None
    return {axis % rank for axis in given}


def _plan(op: OpSignature) -> _Plan:
    """Return the reduction in four dimensions; above rank 4, adjacent dimensions are merged if both or neither are reduced."""
    x, axes = op.inputs[0], _axes(op)
    assert x is not None and axes is not None
    groups: list[tuple[bool, int]] = [(axis in axes, size) for axis, size in enumerate(x.shape)]
    if len(groups) > 4:
        short: list[tuple[bool, int]] = []
        for reduced, size in groups:
            if size == 1:
                continue
            if short and short[-1][0] == reduced:
                short[-1] = (reduced, short[-1][1] * size)
            else:
                short.append((reduced, size))
        groups = short
    if len(groups) > 4:
        return _plan_gather(groups)
    groups = [(False, 1)] * (4 - len(groups)) + groups
    return _Plan(
        shape4(tuple(size for _, size in groups)),
        shape4(tuple(1 if reduced else size for reduced, size in groups)),
        tuple(at for at, (reduced, _) in enumerate(groups) if reduced),
    )


def _plan_gather(groups: list[tuple[bool, int]]) -> _Plan:
    """Return a plan that first moves kept dimensions to the front; all reduced ones then are the channels."""
    sizes = [size for _, size in groups]
    order = sorted(range(len(groups)), key=lambda at: groups[at][0])
    reads, writes = dense(sizes), dense([sizes[at] for at in order])
    loops = tuple(Loop(sizes[at], reads[at], write) for at, write in zip(order, writes, strict=True))
    kept, reduced = (prod(size for is_reduced, size in groups if is_reduced is kind) for kind in (False, True))
    return _Plan((1, 1, kept, reduced), (1, 1, kept, 1), (3,), loops)


@limit("axes must be constant, inside the input, and leave at most six groups of dimensions")
def axes_fit(op: OpSignature, target: Target) -> Verdict:
    x, axes = op.inputs[0], _axes(op)
    assert x is not None
    if axes is None:
        return no(f"axes {numbers(op, 1)} of shape {list(x.shape)}")
    plan = _plan(op)
    if not loops_fit(plan.gather):
        return no(f"axes {sorted(axes)} of shape {list(x.shape)}", hint="reshape to fewer dimensions")
    count = prod(plan.inner) // prod(plan.outer)
    if count > _MAX_ELEMENTS[x.dtype.itemsize]:
        return no(f"{count} elements are reduced to one")
    if prod(plan.outer) != prod(op.outputs[0].shape):
        return no(f"axes {sorted(axes)} of shape {list(x.shape)} do not give {list(op.outputs[0].shape)}")
    return OK


def mean_multiplier(real: float, count: int) -> tuple[int, int]:
    """Return multiplier and shift of a mean of `count`, with the division folded in (docs/numerics.md, Reductions)."""
    m, shift = multiplier(real)
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    return (m << bits) // count, shift - bits


def _input_and_count(state: Legalizer) -> tuple[TensorSignature, int]:
    x, plan = state.signature.inputs[0], _plan(state.signature)
    assert x is not None
    return x, prod(plan.inner) // prod(plan.outer)


def sum_steps(x: TensorSignature, y: TensorSignature, count: int) -> npt.NDArray[np.uint8]:
    """Least sum of `count` stored INT8 values that gives more than -128, -127, … 126 (docs/numerics.md, Reductions).

    LiteRT scales sums in float32. Each of its roundings keeps the order of sums, so 255 thresholds say it all.
    """
    scale = np.float32(x.scale) / np.float32(y.scale)
    bias = np.float32(-x.zero_point) * scale * np.float32(count)

    def result(total: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        real = (total.astype(np.float32) * scale + bias).astype(np.float64)
        return np.copysign(np.floor(np.abs(real) + 0.5), real) + y.zero_point

    wanted = np.arange(-127, 128)
    low, high = (
        np.full(255, -128 * count),
        np.full(255, 127 * count + 1),
    )  # the least sum that gives it lies in [low, high]
    while (low < high).any():
        middle = (low + high) // 2
        reached = result(middle) >= wanted
        low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
    return np.frombuffer(low.astype("<i4").tobytes(), np.uint8)


def _legalize(
    state: Legalizer,
    factor: tuple[int, int],
    offset: int,
    rounding: Rounding,
    steps: npt.NDArray[np.uint8] | None = None,
) -> None:
    op = state.signature
    plan = _plan(op)
    y = op.outputs[0]
    low, high = range_of(y.dtype)
    source = state.value(0)
    if plan.gather:
        value = state.graph.values[source]
        source = state.temporary(f"{y.name} (gathered)", plan.inner, value.dtype, value.scale, value.zero_point)
        emit_copy(state, state.value(0), source, plan.gather)
    x, output = reshape(state, source, plan.inner), reshape(state, state.output(), plan.outer)
    mask = sum(1 << axis for axis in plan.axes)
    params = ReduceParams(mask, _MODES[op.code], offset, *factor, y.zero_point, low, high)
    demand: dict[int, RowDemand] | None = None if 1 in plan.axes else {0: RowDemand()}
    if state.graph.values[x].data is not None:
        demand = {}
    state.emit(Node(ABI.name, [x, steps, output], output, params, rounding, demand))


_SHAPES = (not_empty, constant_argument, axes_fit)


@serves("MEAN", limits=(one_input_type, *_SHAPES, rescale_fits))
def legalize_mean(state: Legalizer) -> None:
    """Emit a mean with the division by the number of elements folded into the multiplier (docs/numerics.md, Reductions)."""
    x, count = _input_and_count(state)
    factor = mean_multiplier(x.scale / state.signature.outputs[0].scale, count)
    _legalize(state, factor, -x.zero_point * count, Rounding.DOUBLE)


@limit("the largest sum must stay within INT32 output steps")
def sum_fits(op: OpSignature, target: Target) -> Verdict:
    x, y, plan = op.inputs[0], op.outputs[0], _plan(op)
    assert x is not None
    reach = x.scale / y.scale * 255 * (prod(plan.inner) // prod(plan.outer))
    return OK if reach < 2.0**30 else no(f"it reaches {reach:.3g} steps", hint="calibrate on real data")


@serves("SUM", limits=(one_byte_input, *_SHAPES, rescale_fits, sum_fits))
def legalize_sum(state: Legalizer) -> None:
    """Emit a sum: INT8 by LiteRT's default kernel as thresholds, UINT8 by its reference (docs/numerics.md, Reductions)."""
    x, count = _input_and_count(state)
    if x.dtype is DType.INT8:
        _legalize(state, (0, 0), 0, Rounding.NONE, sum_steps(x, state.signature.outputs[0], count))
        return
    factor = multiplier(x.scale / state.signature.outputs[0].scale)
    _legalize(state, factor, -x.zero_point * count, Rounding.DOUBLE)


@serves("REDUCE_MAX", "REDUCE_MIN", limits=(same_moved_type, *_SHAPES, same_quantization))
def legalize_extreme(state: Legalizer) -> None:
    """Emit a maximum or minimum of stored values; the scales must agree."""
    _legalize(state, (0, 0), 0, Rounding.NONE)
