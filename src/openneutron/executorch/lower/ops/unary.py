"""Functions of one value for which LiteRT has an operator without parameters.

GELU, ELU, leaky ReLU and others that have parameters, a fixed range or a second form have files of their own; functions
for which LiteRT has no operator are in `functions.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import operator_name
from openneutron.executorch.lower.ops._unary import lower_unary
from openneutron.executorch.lower.values import Value
from openneutron.executorch.operators import annotates, lowers
from openneutron.executorch.quantize.specs import RANGE_KEY

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.lower.call import Call
    from openneutron.executorch.quantize.annotator import Annotator

# LiteRT rounds square roots down.
_TABLES = {
    "aten.exp.default": "EXP",
    "aten.log.default": "LOG",
    "aten.rsqrt.default": "RSQRT",
    "aten.sqrt.default": "SQRT",
}
_CODES = {**_TABLES, "aten.abs.default": "ABS", "aten.hardswish.default": "HARD_SWISH"}


@annotates(*_CODES, *(name.replace(".default", "_.default") for name in _CODES))
def annotate(node: Node, a: Annotator) -> None:
    """Give the result its own range; with the input's, half the range of a magnitude would be unused."""
    part = node.meta.get(RANGE_KEY)
    if part is None:
        a.unary(node)
    else:
        a.write(node, {node.args[0]: a.specs.part_of_range(part)}, a.specs.part_of_range(1.0))  # type: ignore[dict-item]


@lowers(*_TABLES, cpu="table")
@lowers("aten.abs.default")
@lowers("aten.hardswish.default", preserve=True, cpu="table")  # its decomposition has no quantized values inside
def lower(call: Call) -> Value:
    """Lower to the LiteRT operator of the same name."""
    return lower_unary(call, _CODES[operator_name(call.node)])
