"""BATCH_MATMUL of two activations: either side transposed, batches broadcast, both zero points honoured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import check_quantized, is_wide, not_empty, range_of, require_input
from openneutron.compiler.kernels.wide import MOST_SUM
from openneutron.compiler.l1 import Node, RowDemand
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, multiplier, reduced_multipliers
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

_MAX_RANK = 5  # LiteRT's own
_WIDE_LEFT_SHIFT = 7  # of the reference's multiplication of 64-bit sums
_LARGEST_PRODUCT = 1 << 30  # of two INT16 values: -2^15 times -2^15


@dataclass(frozen=True)
class BatchMatmulParams:
    """Parameters of a `batch_matmul` call. Image n of the output is (outer, inner) = (n / inner, n mod inner)."""

    transpose_left: int = param("1: a left matrix is stored [depth, rows]")
    transpose_right: int = param("1: a right matrix is stored [columns, depth]")
    inner: int = param("size of the second batch dimension of the output")
    left_inner: int = param("the same of the left input; 1 repeats")
    right_inner: int = param("the same of the right input; 1 repeats")
    left_zero: int = param("zero point of the left input")
    right_zero: int = param("zero point of the right input")
    multiplier: int = param("fixed-point factor; of 16 bits for 16-bit matrices", least=4)
    shift: int = param("its exponent; for 16-bit matrices the right shift")
    output_zero: int = param("added after requantizing")
    clamp_low: int = param("smallest output")
    clamp_high: int = param("largest output")


ABI = register(
    KernelAbi(
        id=8,
        name="batch_matmul",
        abi=1,
        operands=("left", "right", "lut?", "output"),
        params=BatchMatmulParams,
        cost="matmul",
        meaning="matrix product of two activations; a matrix is one row of pixels, rows and images are the batch",
    )
)


@limit("both inputs and the output must all be INT8 or all INT16, quantized per tensor, INT16 with zero point 0")
def signed_operands(op: OpSignature, target: Target) -> Verdict:
    for tensor in (op.input(0), op.input(1), op.outputs[0]):
        verdict = check_quantized(tensor, (op.outputs[0].dtype,) if is_wide(op) else (DType.INT8,))
        if not verdict:
            return verdict
    return OK


@limit("inputs must be 2-D to 5-D, with equal inner sizes and batches that broadcast")
def shapes_multiply(op: OpSignature, target: Target) -> Verdict:
    left, right, y = require_input(op, 0).shape, require_input(op, 1).shape, op.outputs[0].shape
    message = f"inputs {list(left)} and {list(right)}, output {list(y)}"
    if op.options is None or not (2 <= len(left) <= _MAX_RANK and 2 <= len(right) <= _MAX_RANK):
        return no(message)
    rows, depth = left[-2:][::-1] if op.options.adjX else left[-2:]
    inner, columns = right[-2:][::-1] if op.options.adjY else right[-2:]
    try:
        batch = np.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        return no(message)
    return OK if depth == inner and y == (*batch, rows, columns) else no(message)


@limit("the product of the input scales over the output scale must stay below 2^30, of INT16 below 2^7")
def shift_fits(op: OpSignature, target: Target) -> Verdict:
    factor = _factor(op)
    most = _WIDE_LEFT_SHIFT if is_wide(op) else MAX_LEFT_SHIFT
    if not math.isfinite(factor) or multiplier(factor)[1] > most:
        return no(f"it is {factor:.3g}", hint="calibrate on real data")
    return OK


@limit("with INT16, sums of the largest products must stay below 2^47")
def sums_fit(op: OpSignature, target: Target) -> Verdict:
    depth = require_input(op, 0).shape[-2 if op.options is not None and op.options.adjX else -1]
    if not is_wide(op) or depth * _LARGEST_PRODUCT < MOST_SUM:
        return OK
    return no(f"{depth} products reach {depth * _LARGEST_PRODUCT}", hint="split the product")


def _factor(op: OpSignature) -> float:
    with np.errstate(over="ignore"):
        product = float(np.float32(require_input(op, 0).scale) * np.float32(require_input(op, 1).scale))
    return product / op.outputs[0].scale


@serves("BATCH_MATMUL", limits=(signed_operands, not_empty, shapes_multiply, shift_fits, sums_fit))
def legalize(state: Legalizer) -> None:
    """Emit the kernel of docs/numerics.md, Batch matrix product; batches are folded into (outer × inner, rows)."""
    left, right, y = require_input(state.signature, 0), require_input(state.signature, 1), state.signature.outputs[0]

    def five(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (_MAX_RANK - len(shape)) + shape

    wide = is_wide(state.signature)
    if wide:
        m, shift = (int(one[0]) for one in reduced_multipliers([_factor(state.signature)]))
    else:
        m, shift = multiplier(_factor(state.signature))
    low, high = range_of(y.dtype)
    depth = left.shape[-2] if state.op.options.adjX else left.shape[-1]
    params = BatchMatmulParams(
        transpose_left=int(state.op.options.adjX), transpose_right=int(state.op.options.adjY),
        inner=five(y.shape)[1], left_inner=five(left.shape)[1], right_inner=five(right.shape)[1],
        left_zero=left.zero_point, right_zero=right.zero_point, multiplier=m, shift=shift,
        output_zero=y.zero_point, clamp_low=low, clamp_high=high,
    )  # fmt: skip
    # Matrices of the third batch dimension are rows here, so they stream unless one side repeats.
    streams = five(left.shape)[2] == five(right.shape)[2]
    state.emit(
        Node(
            kernel=ABI.name,
            operands=[state.value(0), state.value(1), None, state.output()],
            output=state.output(),
            params=params,
            rounding=Rounding.SINGLE if wide else Rounding.DOUBLE,
            demand={0: RowDemand(), 1: RowDemand()} if streams else None,
            macs=math.prod(y.shape) * depth,
        )
    )
