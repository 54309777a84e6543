"""Bounds of clamping activations, and fusing them into the operator before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.operators import lowerings
from openneutron.litert.codes import CLAMPS, FUSED_ACTIVATIONS

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call

Bounds = tuple[float, float]

# Activations that LiteRT operators can fuse, by their bounds.
FUSED: dict[Bounds, str] = {bounds: code for code, bounds in CLAMPS.items() if code in FUSED_ACTIVATIONS}


def bounds_of(node: Node) -> Bounds | None:
    """Return the bounds of a clamping activation, None when a bound is a tensor."""
    name, given = operator_name(node), arguments(node)
    if name.startswith("aten.relu6"):
        return 0.0, 6.0
    if name.startswith("aten.relu"):
        return 0.0, math.inf
    if name.startswith("aten.hardtanh"):
        return _number(given["min_val"], -math.inf), _number(given["max_val"], math.inf)
    low, high = given["min"], given["max"]
    if not all(bound is None or isinstance(bound, (int, float)) for bound in (low, high)):
        return None
    return _number(low, -math.inf), _number(high, math.inf)


def fuse_activation(call: Call) -> str:
    """Return the activation to fuse into this operator: that of its only reader, if LiteRT can fuse it, else "NONE"."""
    users = list(call.node.users)
    if len(users) != 1:
        return "NONE"
    rule = lowerings().get(operator_name(users[0]))
    if rule is None or not rule.activation:
        return "NONE"
    bounds = bounds_of(users[0])
    name = FUSED.get(bounds) if bounds is not None else None
    if name is None:
        return "NONE"
    call.absorb(users[0])
    return name


def _number(given: Any, default: float) -> float:
    return default if given is None else float(given)
