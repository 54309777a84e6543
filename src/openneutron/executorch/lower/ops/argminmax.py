"""Index of the largest or smallest value along one dimension: an integer, stored as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.values import Value, plain
from openneutron.executorch.operators import annotates, lowers
from openneutron.litert.graph import DType
from openneutron.litert.operator_options import schema
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

_CODES = {"aten.argmax.default": "ARG_MAX", "aten.argmin.default": "ARG_MIN"}


@limit("the dimension must be given")
def one_dimension(call: Call) -> Verdict:
    """LiteRT's operators search along one dimension."""
    return OK if call["dim"] is not None else no("dim is None", hint="flatten before, and give dim=1")


@limit("keepdim must be False")
def drops_dimension(call: Call) -> Verdict:
    """LiteRT's operators drop the dimension, and no kernel renames integers."""
    return no("keepdim is True", hint="leave it out, and unsqueeze the result") if call["keepdim"] else OK


@annotates(*_CODES)
def annotate(node: Node, a: Annotator) -> None:
    """Stored values are compared without rescaling; the result is an index and is not quantized."""
    a.read(node)


@lowers(*_CODES, limits=(one_dimension, drops_dimension), stored=True, cpu="reduce")
def lower(call: Call) -> Value:
    """Lower to ARG_MAX or ARG_MIN; the result is INT64, as in PyTorch."""
    x = call.activation("self")
    dim = call.dim(call["dim"], x.rank)
    order = call.common_order([x])
    axis = call.constant("axis", order.index(dim), DType.INT32)
    survivors = [one for one in plain(x.rank) if one != dim]
    kept = tuple(survivors.index(one) for one in order if one != dim)
    value, made = call.result(kept, None, [x.shape[one] for one in survivors], dtype=DType.INT64)
    code = _CODES[operator_name(call.node)]
    call.emit(code, [call.tensor(x, order), axis], [made], output_type=schema().TensorType.INT64)
    return value
