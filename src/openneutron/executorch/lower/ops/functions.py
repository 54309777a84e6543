"""Functions of one value for which LiteRT has no INT8 operator: each becomes a table of 256 entries.

Some exist only before decomposition (softplus, mish); the operators that they decompose into become one table together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# In the Edge graph under these names.
_KEPT = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "expm1", "floor", "log10", "log1p",
    "log2", "reciprocal", "round", "sign", "sin", "sinh", "tan", "trunc",
)  # fmt: skip
# Decomposed into several operators, or into one of the above.
_DECOMPOSED = (
    "celu", "deg2rad", "frac", "hardshrink", "log_sigmoid", "logit", "mish", "nan_to_num", "rad2deg", "selu", "sgn",
    "sinc", "softplus", "softshrink", "square", "threshold",
)  # fmt: skip
_NUMBERS = ("pow.Tensor_Scalar", "pow.Scalar", "remainder.Scalar", "fmod.Scalar", "rsub.Scalar", "floor_divide.Scalar")


@annotates(*(f"aten.{name}.default" for name in (*_KEPT, *_DECOMPOSED)))
@annotates(*(f"aten.{name}_.default" for name in (*_KEPT, *_DECOMPOSED)))
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


@annotates(*(f"aten.{name}" for name in _NUMBERS), *(f"aten.{name.replace('.', '_.')}" for name in _NUMBERS))
def annotate_with_number(node: Node, a: Annotator) -> None:
    """Quantize the tensor, and give the result its own range; the number is part of the function."""
    x = next((one for one in node.args if a.is_float(one)), None)
    if x is not None:
        a.compute(node, [x])


@lowers(*(f"aten.{name}.default" for name in _KEPT), table=True, cpu="table")
@lowers(
    "aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.remainder.Scalar", "aten.fmod.Scalar", table=True, cpu="table"
)
def lower(call: Call) -> Value:
    """Reject the operator: where a table is possible, `lower/unary_table.py` has already made it."""
    if not call.lowering.with_tables:
        raise call.reject(
            "needs_table",
            "it becomes a table of 256 entries, which NXP's converter does not take",
            "use --converter open",
        )
    raise call.reject(
        "not_a_table", "between its input and its result nothing is quantized, though several tensors meet there",
        "give calibration data, or quantize the model with NeutronQuantizer",
    )  # fmt: skip
