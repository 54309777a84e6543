"""Rules of the source: one function per LiteRT operator says what its output bytes are, given the tags of its inputs.

A rule returns the tags of each output, or None where it does not know this form of the operator; such an operator is a
function without a known inside, equal to another only with the same attributes and inputs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

from openneutron.certify.read.litert import Graph, Operator, Tensor
from openneutron.certify.tags import value_of
from openneutron.certify.world import World

Rule = Callable[["Context"], "list[array[int]] | None"]
RULES: dict[str, Rule] = {}


@dataclass
class Context:
    """One operator with the tags of what it reads."""

    world: World
    graph: Graph
    op: Operator
    values: dict[int, array[int]]
    kept: dict[int, array[int]] = field(default_factory=dict)  # what variable tensors hold from here on

    def tensor(self, position: int) -> Tensor:
        """Input tensor at a position."""
        return self.graph.tensors[self.op.inputs[position]]

    def has(self, position: int) -> bool:
        """Whether an optional input is given."""
        return position < len(self.op.inputs) and self.op.inputs[position] >= 0

    def tags(self, position: int) -> array[int]:
        """Tags of an input."""
        return self.values[self.op.inputs[position]]

    def inner(self, position: int) -> Tensor:
        """A tensor that only lends its scale to what happens inside the operator."""
        return self.graph.tensors[self.op.intermediates[position]]

    def keep(self, position: int, tags: array[int]) -> None:
        """Let the variable tensor at a position hold these tags from here on."""
        self.kept[self.op.inputs[position]] = tags

    @property
    def out(self) -> Tensor:
        """The first output."""
        return self.graph.tensors[self.op.outputs[0]]

    def numbers(self, position: int) -> list[int] | None:
        """A known integer input as numbers."""
        if not self.has(position):
            return None
        tensor, data = self.tensor(position), value_of(self.tags(position))
        if data is None or tensor.dtype not in ("INT32", "INT64"):
            return None
        step = tensor.item
        return [int.from_bytes(data[at : at + step], "little", signed=True) for at in range(0, len(data), step)]


def rule(*codes: str) -> Callable[[Rule], Rule]:
    """Register a rule for these operators."""

    def wrap(function: Rule) -> Rule:
        for code in codes:
            RULES[code] = function
        return function

    return wrap
