"""Choose the layers whose activations get 16 bits.

A tensor has no noise once the layers that compute and read it all have 16 bits; where only some of its readers have, it keeps
the share of the others. Each step adds the layers that remove most noise for their cycles, until the noise is low enough or the
cycles are used up. Layers are whatever names them: nodes of PyTorch's graphs, names of LiteRT's operators.

Example:
    >>> choose_wide(tensors, alone, floor, target=0.003, costs={"conv": 0.02}, most=0.2)
    ['conv']
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Layer = TypeVar("Layer", bound=Hashable)
LayerOf = TypeVar("LayerOf", bound=Hashable, covariant=True)

SMALLEST_COST: Final = 1e-4  # share of the cycles: what costs nothing is not better than all else by any factor
_LEAST_GAIN: Final = 1e-3  # powers of ten of noise: smaller steps only add layers


class NoisyTensor(Protocol[LayerOf]):
    """A tensor by the layers that compute and read it, and its elements. One that moves values is both."""

    @property
    def makers(self) -> Set[LayerOf]: ...

    @property
    def readers(self) -> Set[LayerOf]: ...

    @property
    def elements(self) -> int: ...


def choose_wide(
    tensors: Sequence[NoisyTensor[Layer]], alone: Array, floor: Array, *, target: float, costs: Mapping[Layer, float],
    most: float, conversion: float = 0.0, smallest: float = SMALLEST_COST,
) -> list[Layer]:  # fmt: skip
    """Return layers, in the order in which they were chosen, that bring the noise of every part to `target`.

    `alone` has a row for each tensor, its noise in each part of the outputs; `floor` is what no layer changes. `costs` are what
    16 bits add to the cycles for a layer, as a share of all and at least `smallest`; layers without costs have no 16-bit form.
    `conversion` is what each element adds that both widths need, `most` what all may add together.
    """
    wide: dict[Layer, None] = {}
    used = 0.0
    kept = np.ones(len(tensors))
    touched: dict[Layer, list[int]] = {}
    for at, tensor in enumerate(tensors):
        for layer in tensor.makers | tensor.readers:
            touched.setdefault(layer, []).append(at)
    moves = dict.fromkeys(move for one in tensors for move in _moves(one, costs))
    total = floor + alone.sum(axis=0)
    while (total > target).any():
        best: tuple[float, list[Layer], float] | None = None
        for move in moves:
            new = sorted(move - wide.keys(), key=str)
            after = wide.keys() | move
            cost = sum(max(costs[layer], smallest) for layer in new)
            change = np.zeros(len(floor))
            for at in {at for layer in new for at in touched[layer]}:
                cost += conversion * (_converted(tensors[at], after) - _converted(tensors[at], wide.keys()))
                change += (_noise_left(tensors[at], after) - kept[at]) * alone[at]
            if not new or used + cost > most:
                continue
            gain = _excess(total, target) - _excess(total + change, target)
            rate = gain / max(cost, smallest)  # 16 bits on both sides of a conversion may cost less than it
            if gain > _LEAST_GAIN and (best is None or rate > best[0]):
                best = rate, new, cost
        if best is None:
            break
        wide |= dict.fromkeys(best[1])
        used += best[2]
        kept = np.array([_noise_left(one, wide.keys()) for one in tensors])
        total = floor + kept @ alone
    return list(wide)


def _converted(tensor: NoisyTensor[Layer], wide: Set[Layer]) -> int:
    """Return the elements of a tensor that both widths need, else 0."""
    ends = tensor.makers | tensor.readers
    return tensor.elements if not ends <= wide and not ends.isdisjoint(wide) else 0


def _moves(tensor: NoisyTensor[Layer], costs: Mapping[Layer, float]) -> list[frozenset[Layer]]:
    """Return the sets of layers that remove noise of a tensor: its makers with all readers, or with one of them."""
    makers = frozenset(tensor.makers)
    behind = tensor.readers - makers
    readers = [one for one in sorted(behind, key=str) if one in costs]
    if any(one not in costs for one in makers) or (behind and not readers):
        return []
    return list(dict.fromkeys([makers | frozenset(readers), *(makers | {one} for one in readers)]))


def _noise_left(tensor: NoisyTensor[Layer], wide: Set[Layer]) -> float:
    """Return the share of a tensor's noise that is left."""
    if not tensor.makers <= wide:
        return 1.0
    readers = tensor.readers - tensor.makers
    return len(readers - wide) / len(readers) if readers else 0.0


def _excess(total: Array, target: float) -> float:
    """Return by how much the parts together exceed the target, in powers of ten."""
    return float(np.log10(np.maximum(total / target, 1.0)).sum())
