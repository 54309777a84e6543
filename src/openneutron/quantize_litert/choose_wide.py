"""Choose the operators whose activations get 16 bits.

A tensor has no noise once the operators that compute and read it all have 16 bits; where only some of its readers have, it
keeps the share of the others. Each step adds the operators that remove most noise for their cycles, until the noise is low
enough or the cycles are used up.

Example:
    >>> wide = choose_wide(tensors, noise, target=0.003, costs={"conv": 0.02}, conversion=1e-7, most=0.2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.quantize_litert.find_noise import Noise, QuantizedTensor

Array = npt.NDArray[Any]

_SMALLEST_COST: Final = 1e-4  # share of the cycles: what costs nothing is not better than all else by any factor
_LEAST_GAIN: Final = 1e-2  # powers of ten of noise for all cycles; smaller steps only add operators


def choose_wide(
    tensors: Sequence[QuantizedTensor], noise: Noise, *, target: float, costs: Mapping[str, float], conversion: float,
    most: float,
) -> list[str]:  # fmt: skip
    """Return operators, in the order in which they were chosen, that bring the noise of every part to `target`.

    `costs` are what 16 bits add to the cycles for an operator, as a share of all, `conversion` what each element of a tensor
    adds that some compute or read with 8 bits and others with 16, `most` what all may add together. Operators without costs
    have no 16-bit form.
    """
    alone, floor = np.array(noise.alone).reshape(len(tensors), len(noise.floor)), np.array(noise.floor)
    wide: dict[str, None] = {}
    used = 0.0
    kept = np.ones(len(tensors))
    touched: dict[str, list[int]] = {}
    for at, tensor in enumerate(tensors):
        for name in tensor.makers | tensor.readers:
            touched.setdefault(name, []).append(at)
    moves = dict.fromkeys(move for one in tensors for move in _moves(one, costs))
    total = floor + alone.sum(axis=0)
    while (total > target).any():
        best: tuple[float, list[str], float] | None = None
        for move in moves:
            new = sorted(move - wide.keys())
            after = wide.keys() | move
            near = {at for name in new for at in touched[name]}
            cost = sum(max(costs[name], 0.0) for name in new)
            change = np.zeros(len(floor))
            for at in near:
                cost += conversion * (_converted(tensors[at], after) - _converted(tensors[at], wide.keys()))
                change += (_noise_left(tensors[at], after) - kept[at]) * alone[at]
            if not new or used + cost > most:
                continue
            gain = (_excess(total, target) - _excess(total + change, target)) / max(cost, _SMALLEST_COST)
            if gain > _LEAST_GAIN and (best is None or gain > best[0]):
                best = gain, new, cost
        if best is None:
            break
        wide |= dict.fromkeys(best[1])
        used += best[2]
        kept = np.array([_noise_left(one, wide.keys()) for one in tensors])
        total = floor + kept @ alone
    return list(wide)


def _converted(tensor: QuantizedTensor, wide: Set[str]) -> int:
    """Return the elements of a tensor that both widths need, else 0."""
    ends = tensor.makers | tensor.readers
    return tensor.elements if not ends <= wide and not ends.isdisjoint(wide) else 0


def _moves(tensor: QuantizedTensor, costs: Mapping[str, float]) -> list[frozenset[str]]:
    """Return the sets of operators that remove noise of a tensor: its makers with all readers, or with one of them."""
    makers = frozenset(tensor.makers)
    readers = [name for name in sorted(tensor.readers - makers) if name in costs]
    if any(name not in costs for name in makers) or (tensor.readers - makers and not readers):
        return []
    return list(dict.fromkeys([makers | frozenset(readers), *(makers | {name} for name in readers)]))


def _noise_left(tensor: QuantizedTensor, wide: Set[str]) -> float:
    """Return the share of a tensor's noise that is left."""
    if not tensor.makers <= wide:
        return 1.0
    readers = tensor.readers - tensor.makers
    return len(readers - wide) / len(readers) if readers else 0.0


def _excess(total: Array, target: float) -> float:
    """Return by how much the parts together exceed the target, in powers of ten."""
    return float(np.log10(np.maximum(total / target, 1.0)).sum())
