"""Choose the operators whose activations get 16 bits.

A tensor has no noise once the operators that compute and read it all have 16 bits; where only some of its readers have, it keeps
the share of the others. Each step adds the operators that remove most noise for their cycles, until the noise is low enough or
the cycles are used up.

Example:
    >>> wide = choose_wide(tensors, noise, target=0.003, costs={"conv": 0.02}, most=0.2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.run.find_noise import Noise, QuantizedTensor

Array = npt.NDArray[Any]

_SMALLEST_COST: Final = 0.001  # share of the cycles; an operator that is cheaper still adds a conversion of its input
_LEAST_GAIN: Final = 1e-3  # powers of ten of noise; smaller steps only add operators


def choose_wide(
    tensors: Sequence[QuantizedTensor], noise: Noise, *, target: float, costs: Mapping[str, float], most: float
) -> list[str]:
    """Return operators, in the order in which they were chosen, that bring the noise of every part to `target`.

    `costs` are what 16 bits add to the cycles for an operator, as a share of all, `most` what they may add together. Operators
    without costs have no 16-bit form.
    """
    alone, floor = np.array(noise.alone).reshape(len(tensors), -1), np.array(noise.floor)
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
            cost = sum(max(costs[name], _SMALLEST_COST) for name in new)
            if not new or used + cost > most:
                continue
            after = wide.keys() | move
            change = np.zeros(len(floor))
            for at in {at for name in new for at in touched[name]}:
                change += (_noise_left(tensors[at], after) - kept[at]) * alone[at]
            gain = _excess(total, target) - _excess(total + change, target)
            if gain > _LEAST_GAIN and (best is None or gain / cost > best[0]):
                best = gain / cost, new, cost
        if best is None:
            break
        wide |= dict.fromkeys(best[1])
        used += best[2]
        kept = np.array([_noise_left(one, wide.keys()) for one in tensors])
        total = floor + kept @ alone
    return list(wide)


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
