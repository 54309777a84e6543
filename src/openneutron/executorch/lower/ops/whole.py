"""A layer that was kept whole: its operators, lowered as if they stood in the program themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.lower.encoding import Rejected, reject
from openneutron.executorch.lower.layout import Value
from openneutron.executorch.lower.whole import OPERATOR, body_of, placeholders, results
from openneutron.executorch.operators import lowers

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@lowers(OPERATOR, cpu="matmul", tolerance=3, wide_tolerance=16)  # steps add their differences up
def lower(call: Call) -> tuple[Value, ...]:
    """What its body becomes; a part that cannot be lowered is the layer's fault."""
    body = body_of(call["body"])
    try:
        call.lowering.inline(call.node, dict(zip(placeholders(body), call["inputs"], strict=True)), list(body.nodes))
    except Rejected as inside:
        reason = inside.reason
        raise reject(call.node, reason.code, f"{reason.where}: {reason.message}", reason.hint) from inside
    return tuple(call.lowering.values[node] for node in results(body))
