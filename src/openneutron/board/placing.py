"""Placing: which operators NXP's converter takes into NeutronGraphs and which it leaves to the CPU."""

from __future__ import annotations

from collections.abc import Collection

from openneutron.compiler.front.ingest import Cut, ingest
from openneutron.compiler.front.opened import Checks
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.nxp.limits import check
from openneutron.verdict import Reason

# What may follow the last layer: in every converted file seen these run on the CPU.
_TAIL = ("SOFTMAX", "DEQUANTIZE")


def place(graph: Graph, target: Target, folded: Collection[int], checks: Checks | None = None) -> Cut:
    """Groups that become NeutronGraphs and the reason for each operator that stays; `folded` ones are constants already.

    `checks` is what is known of the operators already.
    """
    known = checks or Checks(graph, target)
    reasons: dict[int, Reason] = {}
    tail = _tail(graph)
    for index, op in enumerate(graph.operators):
        if index in folded:
            continue
        if index in tail:
            name = graph.tensors[op.outputs[0]].name
            message = f"files made by NXP's converter keep {op.code} after the last layer on the CPU"
            reasons[index] = Reason("nxp_tail", message, name)
            continue
        verdict = check(known.signature(op), target)
        if verdict.reason is not None:
            reasons[index] = verdict.reason
    return ingest(graph, target, folded=folded, refused=reasons, checks=known)


def _tail(graph: Graph) -> set[int]:
    """Softmax and dequantize whose results only leave the graph, or pass another of them before they do."""
    readers: dict[int, list[int]] = {}
    for index, op in enumerate(graph.operators):
        for tensor in op.inputs:
            readers.setdefault(tensor, []).append(index)
    found: set[int] = set()
    for index in range(len(graph.operators) - 1, -1, -1):
        op = graph.operators[index]
        if op.code in _TAIL and all(reader in found for tensor in op.outputs for reader in readers.get(tensor, ())):
            found.add(index)
    return found
