"""Splits: each part is a slice, made when something reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import GETITEM, operator_name
from openneutron.executorch.lower.ops._slice import cut
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import lowers

if TYPE_CHECKING:
    from openneutron.executorch.lower.call import Call


@lowers("aten.split_with_sizes_copy.default", shape_only=True, cpu="move")
def lower(call: Call) -> tuple[Value, ...]:
    """Lower to one SLICE per part that is used."""
    x = call.value("self")
    dim = call.dim(call["dim"], x.rank)
    used = {user.args[1] for user in call.node.users if operator_name(user) == GETITEM and user.users}
    parts: list[Value] = []
    start = 0
    for index, length in enumerate(call["split_sizes"]):
        begin, size = [0] * x.rank, list(x.shape)
        begin[dim], size[dim] = start, int(length)
        parts.append(cut(call, x, begin, size, [1] * x.rank) if index in used else x)
        start += int(length)
    return tuple(parts)
