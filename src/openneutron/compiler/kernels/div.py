"""DIV by one constant, as a table."""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty, range_of
from openneutron.compiler.kernels.elementwise import (
    data_inputs,
    known_activation,
    one_byte_type,
    output_range,
    same_shape,
    scaling_of,
    two_inputs,
)
from openneutron.compiler.kernels.lut import emit_lut
from openneutron.compiler.kernels.movement import numbers
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.numbers import tables
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


@limit("the divisor must be a single constant other than zero")
def one_divisor(op: OpSignature, target: Target) -> Verdict:
    divisor, given = op.inputs[1], numbers(op, 1)
    assert divisor is not None
    if not divisor.constant:
        return no(f"{divisor.name!r} is computed at run time", hint="divide by a constant")
    if given is None or len(given) != 1:
        return no(f"it has shape {list(divisor.shape)}", hint="multiply by the reciprocal")
    return OK if given[0] != divisor.zero_point else no("it is zero")


@limit("the quotients must not need a shift to the left")
def quotients_fit(op: OpSignature, target: Target) -> Verdict:
    x, divisor = data_inputs(op)
    given = numbers(op, 1)
    assert given is not None
    low, high = range_of(x.dtype)
    _, shift = tables.quotient_factor(scaling_of(op), divisor.scale)
    shifts = [
        tables.quotient_shift(stored - x.zero_point, given[0] - divisor.zero_point, shift)
        for stored in range(low, high + 1)
    ]
    return OK if min(shifts) >= 0 else no(f"shifts start at {min(shifts)}", hint="multiply by the reciprocal")


@serves("DIV", limits=(not_empty, two_inputs, one_divisor, one_byte_type, same_shape, known_activation, quotients_fit))
def legalize(state: Legalizer) -> None:
    """Emit the table of x / constant, computed in the reference's fixed point (docs/numerics.md, Division)."""
    op = state.signature
    _, divisor = data_inputs(op)
    given = numbers(op, 1)
    assert given is not None
    emit_lut(
        state,
        tables.divide_table(scaling_of(op), given[0] - divisor.zero_point, divisor.scale, output_range(op)),
    )
