"""A layer that was kept as one operator: its body is lowered as if its operators were in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.encoding import Rejected, reject
from openneutron.executorch.lower.layer_calls import OPERATOR, find_body
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import lowers

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@lowers(OPERATOR, cpu="matmul", tolerance=3, wide_tolerance=16)  # differences add up from step to step
def lower(call: Call) -> tuple[Value, ...]:
    """Lower the operators of the body; if one of them cannot be lowered, the whole layer is rejected with its reason."""
    body = find_body(call["body"])
    given = dict(zip(body.placeholders, call["inputs"], strict=True))
    try:
        call.lowering.inline(call.node, given, list(body.graph.nodes))
    except Rejected as inside:
        reason = inside.reason
        raise reject(call.node, reason.code, f"{reason.where}: {reason.message}", reason.hint) from inside
    return tuple(call.lowering.values[node] for node in body.results)
