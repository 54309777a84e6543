"""Placement: which operators NXP's converter takes into NeutronGraphs and which it leaves to the CPU."""

from __future__ import annotations

from collections.abc import Collection

from openneutron.board.sdk import Rules, rules
from openneutron.compiler.front.ingest import Cut, ingest
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.nxp.limits import check
from openneutron.verdict import Reason


def place(
    graph: Graph,
    target: Target,
    folded: Collection[int],
    checks: OperatorCache | None = None,
    by: Rules | None = None,
) -> Cut:
    """Return the groups that become NeutronGraphs and a reason per operator on the CPU; `folded` ones became constants.

    `checks` are verdicts that are already known, `by` the rules of a version of NXP's converter.
    """
    known = checks or OperatorCache(graph, target)
    by = by or rules(target.name)
    reasons: dict[int, Reason] = {}
    tail = _tail(graph, by.tail)
    for index, op in enumerate(graph.operators):
        if index in folded:
            continue
        if index in tail:
            name = graph.tensors[op.outputs[0]].name
            message = f"files made by NXP's converter keep {op.code} after the last layer on the CPU"
            reasons[index] = Reason("nxp_tail", message, name)
            continue
        if op.code in by.left:
            name = graph.tensors[op.outputs[0]].name
            message = f"files made by NXP's converter for {target.name} keep {op.code} on the CPU"
            reasons[index] = Reason("nxp_left", message, name)
            continue
        verdict = check(known.signature(op), target)
        if verdict.reason is not None:
            reasons[index] = verdict.reason
    return ingest(graph, target, folded=folded, refused=reasons, checks=known)


def _tail(graph: Graph, codes: Collection[str]) -> set[int]:
    """Return operators of these codes whose results only leave the graph, directly or through another of them."""
    readers: dict[int, list[int]] = {}
    for index, op in enumerate(graph.operators):
        for tensor in op.inputs:
            readers.setdefault(tensor, []).append(index)
    found: set[int] = set()
    for index in range(len(graph.operators) - 1, -1, -1):
        op = graph.operators[index]
        if op.code in codes and all(reader in found for tensor in op.outputs for reader in readers.get(tensor, ())):
            found.add(index)
    return found
