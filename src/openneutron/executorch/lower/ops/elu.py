"""ELU; with other parameters it is the decomposition of SELU and CELU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import arguments
from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.verdict import OK, Verdict, limit, no

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator


@annotates("aten.elu.default", "aten.elu_.default")
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range."""
    a.unary(node)


@limit("for NXP's converter alpha, scale and input_scale must be 1")
def standard(call: Call) -> Verdict:
    """LiteRT's ELU has no parameters."""
    given = tuple(call[name] for name in ("alpha", "scale", "input_scale"))
    return OK if given == (1, 1, 1) else no(f"they are {given}")


def _is_scaled(node: Node) -> bool:
    given = arguments(node)
    return any(given[name] != 1 for name in ("alpha", "scale", "input_scale"))


@lowers("aten.elu.default", limits=(standard,), table=_is_scaled, cpu="table")
def lower(call: Call) -> Value:
    """Lower to ELU; with other parameters, as in SELU and CELU, to a table."""
    return lower_unary(call, "ELU")
