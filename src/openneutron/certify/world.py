"""The computations of the source model; kernel calls are matched with them."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from openneutron.certify.tags import Symbols


@dataclass
class Computation:
    """One operator of the source that computes: the first tag of its result, its inputs and its parameters by name."""

    kind: str
    base: int
    size: int
    what: dict[str, Any]
    label: str

    def part(self, start: int, count: int) -> range:
        """Return the tags of `count` bytes of the result, from byte `start` on."""
        return range(self.base + start, self.base + start + count)


@dataclass
class World:
    """The computations known so far, shared by the source and the compiled model."""

    symbols: Symbols = field(default_factory=Symbols)
    known: dict[str, list[Computation]] = field(default_factory=dict)
    seen: set[Hashable] = field(default_factory=set)
    moved: set[Hashable] = field(default_factory=set)  # operators of the source with their attributes and inputs
    label: str = ""
    size: int = 0  # bytes of all tensors of both models, and of all iterations of their loops
    effects: list[Hashable] = field(default_factory=list)

    def add_computation(self, kind: str, key: Hashable, size: int, **what: Any) -> array[int]:
        """Return the tags of a result; calls find the computation under `kind`.

        The same key gives the same tags.
        """
        base = self.symbols.block((kind, key), size)
        if (kind, key) not in self.seen:
            self.seen.add((kind, key))
            self.known.setdefault(kind, []).append(Computation(kind, base, size, what, self.label))
        return array("Q", range(base, base + size))

    def step(self, kind: str, key: Hashable, size: int, *, add: bool) -> array[int] | None:
        """Return the tags of a result that is known by its key alone.

        None if there is no such result, unless `add` allows a new one.
        """
        if not add and (kind, key) not in self.seen:
            return None
        self.seen.add((kind, key))
        return self.symbols.tags((kind, key), size)


def dense(shape: tuple[int, ...] | list[int]) -> list[int]:
    """Return the strides, in elements, of a tensor without gaps."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def merge_loops(dims: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return equivalent nested loops with as few levels as possible."""
    sizes: list[int] = []
    steps: list[int] = []
    for size, step in zip(dims, strides, strict=True):
        if size == 1:
            continue
        if sizes and steps[-1] == size * step:
            sizes[-1], steps[-1] = sizes[-1] * size, step
        else:
            sizes.append(size)
            steps.append(step)
    return sizes, steps


def gather_elements(
    tags: array[int], item: int, dims: Sequence[int], strides: Sequence[int], offset: int = 0
) -> array[int]:
    """Return the elements that nested loops over `dims` with these strides visit, from element `offset` on."""
    made = array("Q")
    if 0 in dims:
        return made
    dims, strides = merge_loops(dims, strides)
    inner, step = (dims[-1], strides[-1]) if dims else (1, 1)
    for place in product(*(range(size) for size in dims[:-1])):
        at = offset + sum(i * s for i, s in zip(place, strides, strict=False))
        if step == 1:
            made.extend(tags[at * item : (at + inner) * item])
        elif step == 0:
            made.extend(tags[at * item : (at + 1) * item] * inner)
        elif item == 1 and step > 0:
            made.extend(tags[at : at + (inner - 1) * step + 1 : step])
        else:
            for i in range(inner):
                made.extend(tags[(at + i * step) * item : (at + i * step + 1) * item])
    return made
