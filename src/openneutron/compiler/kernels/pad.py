"""PAD and PADV2: the input inside a frame of one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, range_of
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import around, constant_argument, numbers, same_moved_type, same_q
from openneutron.compiler.kernels.views import bind_view
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class PadParams:
    """Parameters of a `pad` call; what lies behind the input follows from the shapes."""

    before_batch: int = param("images in front of the input")
    before_height: int = param("rows above the input")
    before_width: int = param("columns left of the input")
    before_channels: int = param("channels in front of the input's")
    value: int = param("stored value of the frame")


ABI = register(
    KernelAbi(
        id=24,
        name="pad",
        abi=1,
        operands=("input", "output"),
        params=PadParams,
        cost="element",
        meaning="8-bit input inside a frame of one value, in each of four dimensions",
    )
)


@limit("paddings must be a constant pair of non-negative numbers per dimension")
def paddings_fit(op: OpSignature, target: Target) -> Verdict:
    x, borders = op.inputs[0], numbers(op, 1)
    assert x is not None and borders is not None
    if len(borders) != 2 * len(x.shape) or min(borders, default=0) < 0:
        return no(f"paddings {borders} for shape {list(x.shape)}")
    expected = tuple(n + a + b for n, a, b in zip(x.shape, borders[::2], borders[1::2], strict=True))
    return OK if expected == op.outputs[0].shape else no(f"paddings {borders} do not give {list(op.outputs[0].shape)}")


@limit("the zero point of the output must be a value of its type")
def zero_point_fits(op: OpSignature, target: Target) -> Verdict:
    y = op.outputs[0]
    low, high = range_of(y.dtype)
    return OK if low <= y.zero_point <= high else no(f"it is {y.zero_point}")


@limit("the padding value must be one constant with the output's type, scale and zero point")
def value_fits(op: OpSignature, target: Target) -> Verdict:
    value, y = op.input(2), op.outputs[0]
    if value is None or not value.constant:
        return no("it is computed at run time")
    if value.dtype is not y.dtype or not same_q(value, y) or value.shape not in ((), (1,)):
        return no(f"it is {value.dtype} {list(value.shape)} with {value.scale:g}/{value.zero_point}")
    return OK


def emit_pad(
    state: Legalizer, source: int, output: int, inner: Sequence[int], outer: Sequence[int], before: Sequence[int],
    value: int,
) -> None:  # fmt: skip
    """Emit a pad of `source` (shape `inner`) to `output` (shape `outer`); above rank 4 one node per padded dimension."""
    if len(outer) <= 4:
        missing = (0,) * (4 - len(outer))
        _emit_four(state, source, output, shape4(tuple(inner)), shape4(tuple(outer)), (*missing, *before), value)
        return
    shape = list(inner)
    axes = [axis for axis in range(len(outer)) if inner[axis] != outer[axis]]
    for axis in axes:
        small = around(tuple(shape), axis)
        shape[axis] = outer[axis]
        large = around(tuple(shape), axis)
        v = state.graph.values[source]
        last = axis == axes[-1]
        made = output if last else state.temporary(f"{v.name} (padded)", large, v.dtype, v.scale, v.zero_point)
        _emit_four(state, source, made, small, large, (0, 0, before[axis], 0), value)
        source = made


def _emit_four(
    state: Legalizer, source: int, output: int, inner: tuple[int, int, int, int], outer: tuple[int, int, int, int],
    before: tuple[int, ...], value: int,
) -> None:  # fmt: skip
    x, y = reshape(state, source, inner), reshape(state, output, outer)
    n, h, w, c = before
    constant = state.graph.values[x].data is not None
    demand = {} if constant else {0: RowDemand(1, 1, h, 1)}
    state.emit(Node(ABI.name, [x, y], y, PadParams(n, h, w, c, value), demand=demand))


def _legalize(state: Legalizer, value: int) -> None:
    borders = numbers(state.signature, 1)
    x, y = state.signature.inputs[0], state.signature.outputs[0]
    assert x is not None and borders is not None
    if not any(borders):
        bind_view(state)
        return
    emit_pad(state, state.value(0), state.output(), x.shape, y.shape, borders[::2], value)


_COMMON = (same_moved_type, not_empty, constant_argument, paddings_fit)


@serves("PAD", limits=(*_COMMON, zero_point_fits))
def legalize(state: Legalizer) -> None:
    """Emit a pad with the output's zero point (docs/numerics.md, Padding and reshape)."""
    _legalize(state, state.signature.outputs[0].zero_point)


@serves("PADV2", limits=(*_COMMON, value_fits))
def legalize_with_value(state: Legalizer) -> None:
    """Emit a pad with the stored value of the third input."""
    _legalize(state, int(state.constant(2).reshape(-1)[0]))
