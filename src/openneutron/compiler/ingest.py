"""Ingest: decide which L0 operators go into NeutronGraphs and cut the graph into groups that can be run one by one.

Groups are made by colouring in execution order: an operator takes the largest colour of its producers, plus one where it
changes engine. A path that leaves a group never comes back to it, so contracting groups cannot make a cycle.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping
from dataclasses import field, replace

from openneutron.compiler import kernels
from openneutron.compiler.signature import default_options, of_operator
from openneutron.litert.graph import Graph
from openneutron.records import dataclass
from openneutron.targets import Target
from openneutron.verdict import Reason

# Operators that only rename bytes: a group of nothing else is not worth a NeutronGraph.
VIEWS = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})


@dataclass
class Group:
    """Operators of one colour: all of them go into one NeutronGraph, or all stay as they are."""

    converted: bool
    operators: list[int] = field(default_factory=list)


@dataclass
class Cut:
    """Groups in execution order, and the reason for each operator that stays."""

    groups: list[Group]
    reasons: dict[int, Reason]


def _colour(graph: Graph, accepted: list[bool]) -> list[int]:
    """Even colours are converted, odd ones are left; see the module's text."""
    made_by: dict[int, int] = {}
    colours: list[int] = []
    for index, op in enumerate(graph.operators):
        colour = 0 if accepted[index] else 1
        for tensor in op.inputs:
            if tensor in made_by:
                producer = made_by[tensor]
                theirs = colours[producer]
                colour = max(colour, theirs if accepted[producer] == accepted[index] else theirs + 1)
        colours.append(colour)
        for tensor in op.outputs:
            if graph.tensors[tensor].data is None:
                made_by[tensor] = index
    return colours


def ingest(
    graph: Graph,
    target: Target,
    *,
    minimum: int = 1,
    left_out: tuple[str, ...] = (),
    folded: Collection[int] = (),
    refused: Mapping[int, Reason] | None = None,
) -> Cut:
    """Check every operator and group the accepted ones.

    `left_out` are operator names or output tensor names, exact or glob, that the user keeps on the CPU; `folded` are
    operators whose outputs are constants already: they are in no group; `refused` are left for a reason found later.
    """
    reasons: dict[int, Reason] = dict(refused or {})
    for index, op in enumerate(graph.operators):
        if index in folded or index in reasons:
            continue
        names = [op.code, *(graph.tensors[t].name for t in op.outputs)]
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in left_out for name in names):
            reasons[index] = Reason("left_out", "left on the CPU on request", names[-1])
            continue
        verdict = kernels.check(of_operator(graph, op), target, streams=True)
        if verdict.reason is not None:
            reasons[index] = verdict.reason
    while True:
        accepted = [index not in reasons for index in range(len(graph.operators))]
        colours = _colour(graph, accepted)
        groups: dict[int, Group] = {}
        for index, colour in enumerate(colours):
            if index in folded:
                continue
            groups.setdefault(colour, Group(accepted[index])).operators.append(index)
        small = [g for g in groups.values() if g.converted and _too_small(graph, g, minimum)]
        if not small:
            return Cut([groups[colour] for colour in sorted(groups)], reasons)
        for group in small:
            for index in group.operators:
                name = graph.tensors[graph.operators[index].outputs[0]].name
                reasons[index] = Reason(
                    "group_too_small",
                    f"its group of {len(group.operators)} operators is not worth a NeutronGraph",
                    name,
                )


def _too_small(graph: Graph, group: Group, minimum: int) -> bool:
    working = [i for i in group.operators if graph.operators[i].code not in VIEWS]
    return len(working) < minimum


def extract(graph: Graph, group: Group) -> tuple[Graph, list[int], list[int]]:
    """The group as a graph of its own, with the indices of its inputs and outputs in the whole graph."""
    members = set(group.operators)
    made = {t for i in group.operators for t in graph.operators[i].outputs}
    inputs = list(
        dict.fromkeys(
            t
            for i in group.operators
            for t in graph.operators[i].inputs
            if t >= 0 and t not in made and graph.tensors[t].data is None
        )
    )
    needed = set(graph.outputs)
    for index, op in enumerate(graph.operators):
        if index not in members:
            needed.update(op.inputs)
    outputs = list(dict.fromkeys(t for i in group.operators for t in graph.operators[i].outputs if t in needed))
    operators = []
    for i in group.operators:
        op = graph.operators[i]
        given = op.options is not None or op.options2 is not None
        operators.append(op if given else replace(op, options=default_options(op.code)))
    return Graph(graph.name, graph.tensors, operators, inputs, outputs), inputs, outputs
