"""Choose the layers whose activations get 16 bits.

A tensor has no noise once the layers that compute and read it all have 16 bits; where only some of its readers have, it keeps
the share of the others. Each step adds the layers that remove most noise for their cycles, until the noise is low enough or the
cycles are used up.

Example:
    >>> wide = choose_wide(tensors, noise, target=0.003, costs=costs, most=0.2, able=is_able)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

import numpy as np
from torch.fx import Node

from openneutron.executorch.quality.tensors import Array, Noise, QuantizedTensor

SMALLEST_COST: Final = 0.002  # share of the cycles; a layer that is cheaper still adds a conversion of its input
_LEAST_GAIN: Final = 1e-3  # of the potential: smaller steps only add layers


def choose_wide(
    tensors: Sequence[QuantizedTensor],
    noise: Noise,
    *,
    target: float,
    costs: Mapping[Node, float],
    most: float,
    able: Callable[[Node], bool],
) -> list[Node]:
    """Return layers, in the order in which they were chosen, that bring the noise of every part to `target`.

    `costs` are what 16 bits add to the cycles for a layer, as a share of all cycles, `most` what they may add together. Only
    layers that are `able` to have 16 bits are chosen.
    """
    wide: dict[Node, None] = {}
    used = 0.0
    touched: dict[Node, list[int]] = {}
    for at, tensor in enumerate(tensors):
        for layer in tensor.makers | tensor.readers:
            touched.setdefault(layer, []).append(at)
    kept = np.ones(len(tensors))
    total = noise.floor + noise.alone.sum(axis=0)
    moves = dict.fromkeys(move for one in tensors if not one.fixed for move in _moves(one, able))
    while (total > target).any():
        best: tuple[float, list[Node], float] | None = None
        for move in moves:
            new = [layer for layer in move if layer not in wide]
            cost = sum(max(costs.get(layer, 0.0), SMALLEST_COST) for layer in new)
            if not new or used + cost > most:
                continue
            gain = _excess(total, target) - _excess(total + _change(tensors, noise, kept, touched, wide, new), target)
            if gain > _LEAST_GAIN and (best is None or gain / cost > best[0]):
                best = gain / cost, new, cost
        if best is None:
            break
        wide |= dict.fromkeys(sorted(best[1], key=lambda one: one.name))
        used += best[2]
        kept = np.array([_noise_left(one, wide.keys()) for one in tensors])
        total = noise.floor + kept @ noise.alone
    return list(wide)


def _change(
    tensors: Sequence[QuantizedTensor], noise: Noise, kept: Array, touched: Mapping[Node, list[int]],
    wide: Mapping[Node, None], new: Sequence[Node],
) -> Array:  # fmt: skip
    """Return the change of the noise that more layers make."""
    layers = {*wide, *new}
    changed = np.zeros(noise.alone.shape[1])
    for at in {at for layer in new for at in touched.get(layer, ())}:
        changed += (_noise_left(tensors[at], layers) - kept[at]) * noise.alone[at]
    return changed


def _moves(tensor: QuantizedTensor, able: Callable[[Node], bool]) -> Iterable[frozenset[Node]]:
    """Return the sets of layers that remove noise of a tensor: its makers with all readers, or with one of them."""
    makers = frozenset(tensor.makers)
    readers = [one for one in tensor.readers if able(one)]
    if not all(map(able, makers)) or (tensor.readers and not readers):
        return []
    return dict.fromkeys([makers | frozenset(readers), *(makers | {one} for one in readers)])


def _noise_left(tensor: QuantizedTensor, wide: Set[Node]) -> float:
    """Return the share of a tensor's noise that is left."""
    if tensor.fixed or not tensor.makers <= wide:
        return 1.0
    return len(tensor.readers - wide) / len(tensor.readers) if tensor.readers else 0.0


def _excess(total: Array, target: float) -> float:
    """Return by how much the parts together exceed the target, in powers of ten."""
    return float(np.log10(np.maximum(total / target, 1.0)).sum())
