"""Equivalence classes: gives two nodes the same number if growing a segment cannot tell them apart.

Networks repeat their blocks. Two runs of nodes with the same numbers grow to the same segments, so the second run is looked up
in a cache. A number stands for properties relative to its node: the distance to the nodes that make its inputs and read its
output, the rows that they need, and the bytes that are alive meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from openneutron.compiler.l1 import RowDemand
from openneutron.compiler.plan.segments import Structure


def classify_nodes(
    structure: Structure,
    spans: Mapping[int, tuple[int, int]],
    shares: Collection[int],
    held: Sequence[tuple[int, ...]],
    words: Callable[[int], bytes],
) -> list[int]:
    """Return the class of each node. `held` are the bytes alive at each; `words` returns its encoded call, which sets its cost.

    A node in a loop, or with aliased values or accumulators, has a class of its own.
    """
    numbers: dict[Any, int] = {}
    found: list[int] = []
    for at in range(len(structure.graph.nodes)):
        own = at if _is_odd(structure, at) else (words(at), held[at], _relative(structure, spans, shares, at))
        found.append(numbers.setdefault(own, len(numbers)))
    return found


def _is_odd(structure: Structure, at: int) -> bool:
    graph = structure.graph
    node = graph.nodes[at]
    return node.loop >= 0 or any(
        value in structure.aliased or value in structure.joined or graph.values[value].accumulator
        for value in (node.output, *node.inputs())
    )


def _relative(
    structure: Structure, spans: Mapping[int, tuple[int, int]], shares: Collection[int], at: int
) -> tuple[Any, ...]:
    """Describe a node's neighbours relative to it; values that no node makes are described by their index."""
    graph = structure.graph
    node = graph.nodes[at]
    values = []
    for position, operand in enumerate(node.operands):
        if isinstance(operand, int):
            maker = structure.makers.get(operand)
            value = graph.values[operand]
            first, last = spans.get(operand, (at, at))
            values.append(
                (position, (operand,) if maker is None else at - maker, value.shape, value.dtype, operand in shares,
                 operand in spans, at - first, last - at)
            )  # fmt: skip
    out = graph.values[node.output]
    first, last = spans.get(node.output, (at, at))
    demand = None if node.demand is None else tuple((at, _plain(one)) for at, one in node.demand.items())
    uses = tuple((use.node - at, _plain(use.demand)) for use in structure.uses.get(node.output, ()))
    return (
        tuple(values), demand, uses, out.shape, out.dtype, node.workspace, node.in_place, node.downward,
        node.output in structure.outputs, node.output in shares, node.output in spans, at - first, last - at,
    )  # fmt: skip


def _plain(demand: RowDemand | None) -> tuple[int, ...] | None:
    return None if demand is None else (demand.stride, demand.divide, demand.before, demand.extent)
