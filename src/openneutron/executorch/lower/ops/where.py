"""Choices between two numbers by a comparison with a number; they become tables (see `unary_table.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openneutron.executorch.fx import operator_name
from openneutron.executorch.operators import annotates
from openneutron.executorch.quantize.specs import fixed_parameters

if TYPE_CHECKING:
    from torch.fx import Node

    from openneutron.executorch.quantize.annotator import Annotator

_COMPARISONS = frozenset(f"aten.{name}.Scalar" for name in ("gt", "ge", "lt", "le", "eq", "ne"))
# Steps of INT8 on one side of zero: a power of two, so that dividing by it is exact.
_STEPS = 128


@annotates("aten.where.Scalar")
def annotate(node: Node, a: Annotator) -> None:
    """The result is one of two numbers; if one of them is 0, the other is represented exactly.

    It is stored 128 steps from 0, so that averages of such values have steps between the two numbers.
    """
    condition, *numbers = node.args
    if operator_name(condition) not in _COMPARISONS or not a.is_float(condition.args[0]):  # type: ignore[arg-type,union-attr]
        return
    x = condition.args[0]  # type: ignore[union-attr]
    number = max((float(number) for number in numbers), key=abs) or 1.0  # type: ignore[arg-type]
    a.write(condition, {x: a.input_spec(x)}, None)  # type: ignore[arg-type,dict-item]
    a.write(
        node,
        {},
        fixed_parameters(abs(number) / _STEPS, -1 if number > 0 else 0) if 0 in numbers else a.specs.activation(),
    )
