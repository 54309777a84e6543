"""ARG_MAX and ARG_MIN along one axis; the first of equal values wins."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import BYTES, not_empty
from openneutron.compiler.kernels.elementwise import reshape
from openneutron.compiler.kernels.movement import constant_argument, fold_around, numbers
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class ArgMaxParams:
    """Parameters of an `arg_max` call."""

    axis: int = param("0 batch, 1 height, 2 width, 3 channels; the output has size 1 there")
    sign: int = param("1 finds the largest, -1 the smallest value")


ABI = register(
    KernelAbi(
        id=28,
        name="arg_max",
        abi=1,
        operands=("input", "output"),
        params=ArgMaxParams,
        cost="reduce",
        meaning="index, INT32 or INT64, of the first largest or smallest 8-bit value along one dimension",
    )
)


@limit("the input must be INT8 or UINT8, the output INT32 or INT64")
def types_fit(op: OpSignature, target: Target) -> Verdict:
    x, y = op.input(0), op.outputs[0]
    if x is None or x.dtype not in BYTES or y.dtype not in (DType.INT32, DType.INT64):
        return no(f"they are {x.dtype if x else 'absent'} and {y.dtype}")
    return OK


@limit("the axis must be one constant inside the input's rank")
def axis_fits(op: OpSignature, target: Target) -> Verdict:
    x, axes = op.inputs[0], numbers(op, 1)
    assert x is not None and axes is not None
    rank = len(x.shape)
    if len(axes) != 1 or not -rank <= axes[0] < rank:
        return no(f"axis is {axes} for shape {list(x.shape)}")
    size = prod(x.shape) // x.shape[axes[0]]
    return OK if size == prod(op.outputs[0].shape) else no(f"the output is {list(op.outputs[0].shape)}")


@serves("ARG_MAX", "ARG_MIN", limits=(types_fit, not_empty, constant_argument, axis_fits))
def legalize(state: Legalizer) -> None:
    """Emit the kernel; scales do not matter."""
    x, axes = state.signature.inputs[0], numbers(state.signature, 1)
    assert x is not None and axes is not None
    inner, axis = fold_around(x.shape, axes[0] % len(x.shape))
    n, h, w, c = (1 if at == axis else size for at, size in enumerate(inner))
    source, output = reshape(state, state.value(0), inner), reshape(state, state.output(), (n, h, w, c))
    demand: dict[int, RowDemand] | None = None if axis == 1 else {0: RowDemand()}
    if state.graph.values[source].data is not None:
        demand = {}
    params = ArgMaxParams(axis, 1 if state.op.code == "ARG_MAX" else -1)
    state.emit(Node(ABI.name, [source, output], output, params, demand=demand))
