"""Indices of extreme values: integers, stored as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.layout import Value, plain
from openneutron.litert.graph import DType
from openneutron.litert.operator_options import schema
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@limit("the dimension must be given")
def one_dimension(call: Call) -> Verdict:
    """LiteRT's operators search along one dimension."""
    return OK if call["dim"] is not None else no("dim is None", hint="flatten before, and give dim=1")


@limit("keepdim must be False")
def drops_dimension(call: Call) -> Verdict:
    """LiteRT's operators drop the dimension, and no kernel renames integers."""
    return no("keepdim is True", hint="leave it out, and unsqueeze the result") if call["keepdim"] else OK


def lower_index(call: Call, code: str) -> Value:
    """Emit ARG_MAX or ARG_MIN; PyTorch gives INT64."""
    x = call.activation("self")
    dim = call.dim(call["dim"], x.rank)
    order = call.common_order([x])
    axis = call.constant("axis", order.index(dim), DType.INT32)
    survivors = [one for one in plain(x.rank) if one != dim]
    kept = tuple(survivors.index(one) for one in order if one != dim)
    value, made = call.result(kept, None, [x.shape[one] for one in survivors], dtype=DType.INT64)
    call.emit(code, [call.tensor(x, order), axis], [made], output_type=schema().TensorType.INT64)
    return value
