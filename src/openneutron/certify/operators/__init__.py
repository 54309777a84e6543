"""Rules of the source: one function per LiteRT operator computes the tags of its outputs from the tags of its inputs.

A rule returns the tags of each output, or None for a form of the operator that it does not model. Such an operator is opaque:
it equals another one only with the same attributes and inputs.
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
    """One operator with the tags of its inputs."""

    world: World
    graph: Graph
    op: Operator
    values: dict[int, array[int]]
    kept: dict[int, array[int]] = field(default_factory=dict)  # new contents of variable tensors

    def tensor(self, position: int) -> Tensor:
        """Return the input tensor at a position."""
        return self.graph.tensors[self.op.inputs[position]]

    def has(self, position: int) -> bool:
        """Return whether an optional input is given."""
        return position < len(self.op.inputs) and self.op.inputs[position] >= 0

    def tags(self, position: int) -> array[int]:
        """Return the tags of an input."""
        return self.values[self.op.inputs[position]]

    def inner(self, position: int) -> Tensor:
        """Return an intermediate tensor, which only states the quantization of a value inside the operator."""
        return self.graph.tensors[self.op.intermediates[position]]

    def keep(self, position: int, tags: array[int]) -> None:
        """Set the new contents of the variable tensor at a position."""
        self.kept[self.op.inputs[position]] = tags

    @property
    def out(self) -> Tensor:
        """The first output."""
        return self.graph.tensors[self.op.outputs[0]]

    def numbers(self, position: int) -> list[int] | None:
        """Return a known integer input as numbers, otherwise None."""
        if not self.has(position):
            return None
        tensor, data = self.tensor(position), value_of(self.tags(position))
        if data is None or tensor.dtype not in ("INT32", "INT64"):
            return None
        step = tensor.item
        return [int.from_bytes(data[at : at + step], "little", signed=True) for at in range(0, len(data), step)]


def axis_of(number: int, rank: int) -> int:
    """Return an axis counted from the front; raise ValueError if there is no such axis."""
    if not -rank <= number < rank:
        raise ValueError(f"axis {number} of {rank}")
    return number % rank


def rule(*codes: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators."""

    def wrap(function: Rule) -> Rule:
        for code in codes:
            RULES[code] = function
        return function

    return wrap
