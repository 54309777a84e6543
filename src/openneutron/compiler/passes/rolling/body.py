"""What a body of equal steps is."""

from __future__ import annotations

from typing import NamedTuple

from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph
from openneutron.records import dataclass, replace

LEAST_STEPS = 3  # fewer are not worth a loop
# Kernels whose output row y needs row y of their inputs, or an input of one row that broadcasts.
BY_ROWS = frozenset({"add", "add16", "mul", "minmax", "prelu", "squared_difference"})
WITH_WEIGHTS = frozenset({"fully_connected", "fully_connected16"})
ONE_INPUT = WITH_WEIGHTS | {"lut", "lut16", "requantize", "softmax", "softmax16", "slice"}


class Use(NamedTuple):
    """What an operand of the body is in every step: `kind` inside, before (of the step before) or outside.

    `at` is the body's node, or the root outside. `offset` is where it lies in the first step, `advance` bytes further on in
    each next one.
    """

    kind: str
    at: int
    offset: int
    pixel: int
    advance: int = 0


@dataclass
class Body:
    """A run of `steps` equal steps of `size` nodes, from node `first` on."""

    first: int
    size: int
    steps: int
    kept: list[int]  # positions of the body that stay nodes; slices that only pick a step do not
    uses: dict[tuple[int, int], Use]  # (position, operand) → what it is
    initial: dict[int, int]  # position whose value is handed on → the value before the first step
    outputs: dict[int, Use]  # position → where its output moves in a tensor that outlives the steps
    reverse: bool = False  # steps run from the last row to the first


def row_of(shape: tuple[int, int, int, int]) -> tuple[int, int]:
    """Pixels and channels of a row, or of a column, which is a row with the bytes of other rows between its pixels."""
    _, h, w, c = shape
    return h * w, c


def place_of(graph: KernelGraph, value: int) -> Alias:
    """Where a value lies, also one that is part of another; a column as the row that it is."""
    v = graph.values[value]
    _, h, w, c = v.shape
    pixel = c * ITEM_BYTES[v.dtype]
    found = v.alias or Alias(value, 0, h * w * pixel, w * pixel, pixel)
    return replace(found, pixel=found.pitch) if h > 1 and w == 1 else found
