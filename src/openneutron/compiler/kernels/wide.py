"""The channel table of kernels for 16-bit activations, in the rounding mode of LiteRT's kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import factors, narrow_sums, require_input
from openneutron.compiler.numbers.multipliers import (
    mantissa_words,
    multipliers,
    reduced_multipliers,
    wide_channel_table,
)
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no

# Of a sum of products and its bias: the reference multiplies 64-bit sums below 2^47 by 16 bits without overflow, and they
# become doubles without rounding.
MOST_SUM = 1 << 47
_LARGEST_PRODUCT = 1 << 22  # -2^15 times -2^7
WIDE_MEANING = "weights of 8 bits, table of low bias, multiplier, shift and high bias per channel"


class WideTable(NamedTuple):
    """The operand, how the call rounds with it, and whether sums wrap in 32 bits."""

    data: npt.NDArray[np.uint8]
    rounding: Rounding
    narrow: int


def wide_table(op: OpSignature, bias: npt.NDArray[np.int64], target: Target, *, exact: bool = False) -> WideTable:
    """Return the table of all output channels; `exact` rounds the double product, as FULLY_CONNECTED does."""
    x, w, y = require_input(op, 0), require_input(op, 1), op.outputs[0]
    reals = factors(x, w, y)
    narrow = narrow_sums(op)
    if exact:
        (m, shifts), rounding = mantissa_words(reals), Rounding.EXACT53
    elif narrow:
        (m, shifts), rounding = multipliers(reals), Rounding.DOUBLE
    else:
        (m, shifts), rounding = reduced_multipliers(reals), Rounding.SINGLE
    return WideTable(wide_channel_table(bias, m, shifts, target.units), rounding, int(narrow))


@limit("with INT16, sums of the largest products and the bias must stay below 2^47, and weight scales be positive")
def wide_sums_fit(op: OpSignature, target: Target) -> Verdict:
    x, w, bias = require_input(op, 0), require_input(op, 1), op.input(2)
    if x.dtype.itemsize == 1:
        return OK
    if w.quantization is not None and min(w.quantization.scale) <= 0:
        return no("a weight scale is negative", hint="negate the weights of that channel instead")
    depth = int(np.prod(w.shape)) // op.outputs[0].shape[-1]
    products = depth * _LARGEST_PRODUCT
    if products >= MOST_SUM:
        return no(f"{depth} products reach {products}", hint="split the layer")
    if bias is None or bias.magnitudes is None or products + bias.magnitudes.max(initial=0) < MOST_SUM:
        return OK
    largest = int(bias.magnitudes.max())
    return no(f"bias {bias.name!r} reaches {largest}, the products {products}", hint="calibrate on real data")
