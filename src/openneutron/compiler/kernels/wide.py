"""What the array's kernels for 16-bit activations share: the channel table in the rounding that LiteRT's kernel has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from openneutron.compiler.kernels.common import factors, narrow_sums, required
from openneutron.compiler.numbers.multipliers import (
    mantissa_words,
    multipliers,
    reduced_multipliers,
    wide_channel_table,
)
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.microcode.table import Rounding
from openneutron.records import dataclass
from openneutron.verdict import OK, Verdict, limit, no

# Of a sum of products: 64-bit sums of the reference must stay below 2^47, and become doubles without rounding.
_SUM_BITS = 47
_PRODUCT_BITS = 22  # 16 bits times 8
WIDE_MEANING = "weights of 8 bits, table of low bias, multiplier, shift and high bias per channel"


@dataclass(frozen=True)
class WideTable:
    """The operand, how the call rounds with it, and whether sums wrap in 32 bits."""

    data: npt.NDArray[np.uint8]
    rounding: Rounding
    narrow: int


def wide_table(op: OpSignature, bias: npt.NDArray[np.int64], target: Target, *, exact: bool = False) -> WideTable:
    """The table of every output channel; `exact` rounds the double product, as FULLY_CONNECTED does.

    `op` has its inputs in the order data, filter, bias.
    """
    x, w, y = required(op, 0), required(op, 1), op.outputs[0]
    reals = factors(x, w, y)
    narrow = narrow_sums(op)
    if exact:
        (m, shifts), rounding = mantissa_words(reals), Rounding.EXACT53
    elif narrow:
        (m, shifts), rounding = multipliers(reals), Rounding.DOUBLE
    else:
        (m, shifts), rounding = reduced_multipliers(reals), Rounding.SINGLE
    return WideTable(wide_channel_table(bias, m, shifts, target.units), rounding, int(narrow))


@limit("with INT16, sums of the largest products must stay below 2^47, and weight scales be positive")
def wide_sums_fit(op: OpSignature, target: Target) -> Verdict:
    x, w = required(op, 0), required(op, 1)
    if x.dtype.itemsize == 1:
        return OK
    if w.quantization is not None and min(w.quantization.scale) <= 0:
        return no("a weight scale is negative", hint="negate the weights of that channel instead")
    depth = int(np.prod(w.shape)) // op.outputs[0].shape[-1]
    bits = _PRODUCT_BITS + depth.bit_length()
    return OK if bits < _SUM_BITS else no(f"{depth} products take {bits} bits", hint="split the layer")
