"""Describes the body of a loop of repeated steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from openneutron.compiler.l1 import ITEM_BYTES, Alias, KernelGraph

LEAST_STEPS = 3  # fewer are not worth a loop
# Kernels whose output row y needs row y of their inputs, or an input of one row that broadcasts.
BY_ROWS = frozenset({"add", "add16", "mul", "minmax", "prelu", "squared_difference"})
WITH_WEIGHTS = frozenset({"fully_connected", "fully_connected16"})
ONE_INPUT = WITH_WEIGHTS | {"lut", "lut16", "requantize", "softmax", "softmax16", "slice"}


class Use(NamedTuple):
    """An operand of the body. Its `kind` is inside (made in this step), before (made in the step before) or outside.

    `at` is the node of the body that makes it, or the root outside. `offset` is its place in the first step; it advances by
    `advance` bytes in each further step.
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
    kept: list[int]  # positions of the body that remain nodes; slices that only select a step do not
    uses: dict[tuple[int, int], Use]  # (position, operand) → its use
    initial: dict[int, int]  # position whose value the next step reads → its value before the first step
    outputs: dict[int, Use]  # position → place of its output in a tensor that is read after the loop
    reverse: bool = False  # steps run from the last row to the first


def row_of(shape: tuple[int, int, int, int]) -> tuple[int, int]:
    """Pixels and channels of a row, or of a column, which is a row with the bytes of other rows between its pixels."""
    _, h, w, c = shape
    return h * w, c


def place_of(graph: KernelGraph, value: int) -> Alias:
    """Return a value's place, also for a part of another value; a column is described as a row."""
    v = graph.values[value]
    _, h, w, c = v.shape
    pixel = c * ITEM_BYTES[v.dtype]
    found = v.alias or Alias(value, 0, h * w * pixel, w * pixel, pixel)
    return found._replace(pixel=found.pitch) if h > 1 and w == 1 else found
