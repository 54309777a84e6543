"""All 8-bit unary functions as one kernel: a table of 256 bytes indexed by the stored value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import int8_activations, is_wide, not_empty
from openneutron.compiler.kernels.elementwise import (
    emit_unary,
    one_activation_type,
    one_byte_type,
    rescale_fits,
    same_shape,
    scaling_of,
)
from openneutron.compiler.kernels.lut16 import emit_lut16, wide_function_fits
from openneutron.compiler.kernels.prelu import emit_leaky_relu16
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers import tables
from openneutron.compiler.numbers.tables import Table
from openneutron.compiler.signature import OpSignature
from openneutron.litert.graph import DType
from openneutron.litert.table_composite import CODE, ENTRIES, is_table
from openneutron.machine.targets import Target
from openneutron.microcode.abi import KernelAbi, param, register
from openneutron.verdict import OK, Verdict, limit, no


@dataclass(frozen=True)
class LutParams:
    """Parameters of a `lut` call."""

    entries: int = param("entries of the table, 256")


ABI = register(
    KernelAbi(
        id=16,
        name="lut",
        abi=1,
        operands=("input", "table", "output"),
        params=LutParams,
        cost="element",
        meaning="8-bit table look-up; the table is indexed by the stored byte taken as unsigned",
    )
)

# Every right shift of the fixed-point result past 31 bits is undefined in the reference (docs/numerics.md, Integer tables).
_RSQRT_MAX_SCALE = 4096.0


def emit_lut(state: Legalizer, table: Table) -> None:
    """Emit one `lut` node from input 0 to the output."""
    emit_unary(state, ABI.name, [table], LutParams(ENTRIES))


@limit("the output scale of LOGISTIC must be 1/256; of LOGISTIC and TANH in INT16 it must be 1/32768")
def function_scale(op: OpSignature, target: Target) -> Verdict:
    if is_wide(op):
        return wide_function_fits(op)
    if op.code != "LOGISTIC":
        return OK
    y = op.outputs[0]
    return OK if y.scale == 1.0 / 256.0 else no(f"it is {y.scale!r}", hint="fix it when quantizing")


@limit("input scale / 128 over output scale must be below 1")
def hard_swish_shrinks(op: OpSignature, target: Target) -> Verdict:
    (_, exponent), _ = tables.hard_swish_factors(scaling_of(op))
    return OK if exponent <= 0 else no(f"its exponent is {exponent}", hint="calibrate on real data")


@limit("the square root of the input scale times the output scale must not exceed 4096, nor vanish")
def rsqrt_scale(op: OpSignature, target: Target) -> Verdict:
    scaling = scaling_of(op)
    _, shift = tables.inverse_root_factor(scaling)
    product = scaling.in_scale**0.5 * scaling.out_scale
    return OK if product <= _RSQRT_MAX_SCALE and shift <= 30 else no(f"it is {product:g}")


@limit("NEG keeps scale and zero point, and the zero point is 0")
def negates_plainly(op: OpSignature, target: Target) -> Verdict:
    s = scaling_of(op)
    if (s.in_scale, s.in_zero) != (s.out_scale, s.out_zero) or s.in_zero != 0:
        return no(
            f"input is {s.in_scale:g}/{s.in_zero}, output {s.out_scale:g}/{s.out_zero}",
            hint="express the negation as SUB from zero",
        )
    return OK


@limit("alpha times input scale over output scale must stay below 2^30")
def slope_fits(op: OpSignature, target: Target) -> Verdict:
    s = scaling_of(op)
    slope = abs(op.options.alpha if op.options else 0.0) * s.in_scale / s.out_scale
    return OK if slope < float(1 << 30) else no(f"it is {slope:g}")


_ANY = (not_empty, one_byte_type, same_shape)
_WIDE = (not_empty, one_activation_type, same_shape)
_INT8 = (not_empty, int8_activations, same_shape)


@serves("LOGISTIC", "TANH", limits=(*_WIDE, function_scale))
def legalize_function(state: Legalizer) -> None:
    """Emit a table of 1 / (1 + e^-x) or tanh; 16-bit values are interpolated in one."""
    if is_wide(state.signature):
        emit_lut16(state)
        return
    function = tables.logistic if state.signature.code == "LOGISTIC" else tables.tanh
    emit_lut(state, tables.float_table(function, scaling_of(state.signature)))


@serves("ELU", limits=_INT8)
def legalize_elu(state: Legalizer) -> None:
    """Emit a table of ELU."""
    emit_lut(state, tables.float_table(tables.elu, scaling_of(state.signature)))


@serves("GELU", limits=_ANY)
def legalize_gelu(state: Legalizer) -> None:
    """Emit a table of GELU, exact or by tanh as the operator requires."""
    function = tables.gelu_tanh if state.op.options and state.op.options.approximate else tables.gelu
    emit_lut(state, tables.float_table(function, scaling_of(state.signature)))


@serves("EXP", limits=_INT8)
def legalize_exp(state: Legalizer) -> None:
    """Emit a table of e^x."""
    emit_lut(state, tables.float_table(tables.exp, scaling_of(state.signature)))


@serves("LOG", limits=_INT8)
def legalize_log(state: Legalizer) -> None:
    """Emit a table of the natural logarithm."""
    scaling = scaling_of(state.signature)
    emit_lut(state, tables.float_table(tables.log_to(scaling), scaling))


@serves("HARD_SWISH", limits=(*_ANY, hard_swish_shrinks))
def legalize_hard_swish(state: Legalizer) -> None:
    """Emit a table computed in the reference's 16-bit fixed point."""
    emit_lut(state, tables.hard_swish(scaling_of(state.signature)))


@serves("LEAKY_RELU", limits=(*_WIDE, rescale_fits, slope_fits))
def legalize_leaky_relu(state: Legalizer) -> None:
    """Emit a table of two slopes; 16-bit values are computed one by one."""
    alpha = state.op.options.alpha if state.op.options else 0.0
    if is_wide(state.signature):
        emit_leaky_relu16(state, alpha)
        return
    emit_lut(state, tables.leaky_relu(scaling_of(state.signature), alpha))


@serves("ABS", limits=(*_INT8, rescale_fits))
def legalize_abs(state: Legalizer) -> None:
    """Emit a table of the magnitude."""
    emit_lut(state, tables.absolute(scaling_of(state.signature)))


@serves("SQRT", limits=_INT8)
def legalize_sqrt(state: Legalizer) -> None:
    """Emit a table of the square root; inputs below zero give the smallest output."""
    emit_lut(state, tables.square_root(scaling_of(state.signature)))


@serves("RSQRT", limits=(*_INT8, rsqrt_scale))
def legalize_rsqrt(state: Legalizer) -> None:
    """Emit a table of the inverse square root; inputs below zero give the smallest output, zero the largest."""
    emit_lut(state, tables.inverse_square_root(scaling_of(state.signature)))


@limit("of composites only openneutron.table is known: an INT8 tensor and a constant table of 256 INT8 values")
def known_composite(op: OpSignature, target: Target) -> Verdict:
    name = getattr(op.options, "name", None)
    if not is_table(op.options):
        shown = name.decode(errors="replace") if isinstance(name, bytes) else name
        return no(f"it is {shown}", hint="convert the model without composites")
    if len(op.inputs) != 2 or len(op.outputs) != 1 or op.inputs[0] is None or op.inputs[1] is None:
        return no(f"it has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
    table = op.inputs[1]
    if not table.constant or table.shape != (ENTRIES,) or table.dtype is not DType.INT8:
        return no(f"the table is {table.dtype} {list(table.shape)}{'' if table.constant else ', computed at run time'}")
    return OK


@serves(CODE, limits=(known_composite, *_INT8))
def legalize_table(state: Legalizer) -> None:
    """Emit the given table, reordered by the stored byte as an unsigned number."""
    emit_lut(state, np.roll(state.constant(1), ENTRIES // 2).view(np.uint8))


@serves("NEG", limits=(*_INT8, negates_plainly))
def legalize_neg(state: Legalizer) -> None:
    """Emit a table of -q."""
    emit_lut(state, tables.negate_table(scaling_of(state.signature)))
