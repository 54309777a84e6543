"""Choose the layers of a PyTorch program whose activations get 16 bits.

Example:
    >>> wide = choose_wide(tensors, noise, target=0.003, costs=costs, most=0.2, able=is_able)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from torch.fx import Node

from openneutron import choose_wide as widths
from openneutron.executorch.quality.tensors import Noise, QuantizedTensor

SMALLEST_COST: Final = 0.002  # share of the cycles; a layer that is cheaper still adds a conversion of its input


@dataclass(frozen=True)
class _Ends:
    makers: set[Node]
    readers: set[Node]
    elements: int = 0  # conversions are part of the smallest cost


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
    free = [not one.fixed for one in tensors]
    kept = noise.alone[[not one for one in free]].sum(axis=0)  # fixed tensors have 8 bits whatever is chosen
    layers = {layer for one in tensors for layer in one.makers | one.readers if able(layer)}
    return widths.choose_wide(
        [_Ends(one.makers, one.readers) for one in tensors if not one.fixed], noise.alone[free], noise.floor + kept,
        target=target, costs={layer: costs.get(layer, 0.0) for layer in layers}, most=most, smallest=SMALLEST_COST,
    )  # fmt: skip
