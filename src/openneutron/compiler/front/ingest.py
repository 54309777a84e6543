"""Ingest: decide which L0 operators go into NeutronGraphs and cut the graph into groups that can be run one by one.

Groups are made by colouring in execution order: an operator takes the largest colour of its producers, plus one where it
changes engine. A path that leaves a group never comes back to it, so contracting groups cannot make a cycle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from openneutron.compiler.front.left_out import left_out as is_left_out
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.signature import default_options
from openneutron.compiler.variables import CODES, Variables, misuse, unneeded_initializers
from openneutron.litert.codes import VIEWS
from openneutron.litert.graph import Graph
from openneutron.machine.targets import Target
from openneutron.verdict import Reason

_LIFTS = 8  # tries to bring the operators of each variable into one group; one per variable in a chain of groups
# Operators that only rename bytes: a group of nothing else is not worth a NeutronGraph.
RENAMING = VIEWS | CODES


@dataclass
class Group:
    """Operators that become one NeutronGraph together, or that all stay unchanged."""

    converted: bool
    operators: list[int] = field(default_factory=list)


@dataclass
class Cut:
    """Groups in execution order, the reason for each operator that stays, and operators that are no longer needed."""

    groups: list[Group]
    reasons: dict[int, Reason]
    dropped: set[int] = field(default_factory=set)


def _colour(graph: Graph, accepted: list[bool], floors: Mapping[int, int]) -> list[int]:
    """Return a colour for each operator: even ones are converted, odd ones stay. `floors` are lower bounds of some colours."""
    made_by: dict[int, int] = {}
    colours: list[int] = []
    for index, op in enumerate(graph.operators):
        colour = max(0 if accepted[index] else 1, floors.get(index, 0))
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


def _colour_with_variables(graph: Graph, accepted: list[bool], variables: Variables) -> tuple[list[int], set[str]]:
    """Colour the graph so that all operators of a variable are in one group; also returns the variables where that fails.

    A READ_VARIABLE has no inputs, so it can move to the later group that assigns the variable. If that group depends on the
    read through an operator on the CPU, moving never ends, hence the limit of `_LIFTS` tries.
    """
    floors: dict[int, int] = {}
    for _ in range(_LIFTS):
        colours = _colour(graph, accepted, floors)
        uneven = {}
        for name, variable in variables.by_name.items():
            mine = {colours[at] for at in variable.users if accepted[at]}
            if len(mine) > 1:
                uneven[name] = max(mine)
        if not uneven:
            return colours, set()
        for name, colour in uneven.items():
            floors |= dict.fromkeys(variables.by_name[name].users, colour)
    return colours, set(uneven)


def ingest(
    graph: Graph,
    target: Target,
    *,
    minimum: int = 1,
    left_out: tuple[str, ...] = (),
    folded: Collection[int] = (),
    refused: Mapping[int, Reason] | None = None,
    variables: Variables | None = None,
    checks: OperatorCache | None = None,
) -> Cut:
    """Check every operator and group the accepted ones.

    `left_out` are operator names or output tensor names, exact or glob, that the user keeps on the CPU. `folded` are
    operators whose outputs are constants already: they are in no group. `refused` are operators that an earlier try found
    not to fit. `variables` are the model's, `checks` is the cache of verdicts.
    """
    held, known = variables or Variables(), checks or OperatorCache(graph, target)
    reasons: dict[int, Reason] = misuse(graph, held) | dict(refused or {})
    for index, op in enumerate(graph.operators):
        if index in folded or index in reasons or index in held.set_by:
            continue
        if is_left_out(graph, op, left_out):
            place = graph.tensors[op.outputs[-1]].name if op.outputs else op.code
            reasons[index] = Reason("left_out", "left on the CPU on request", place)
            continue
        verdict = known.verdict(op)
        if verdict.reason is not None:
            reasons[index] = verdict.reason
    while True:
        _keep_whole(held, reasons)
        accepted = [index not in reasons and index not in held.set_by for index in range(len(graph.operators))]
        dropped = unneeded_initializers(held, reasons) | _find_unread(graph, accepted)
        colours, split = _colour_with_variables(graph, accepted, held)
        if split:
            reasons |= {at: _explain_split(name) for name in split for at in held.by_name[name].users}
            continue
        groups: dict[int, Group] = {}
        for index, colour in enumerate(colours):
            if index in folded or index in dropped:
                continue
            if colour not in groups:
                groups[colour] = Group(accepted[index])
            groups[colour].operators.append(index)
        small = [g for g in groups.values() if g.converted and too_small(graph, g, minimum)]
        if not small:
            for index in held.set_by.keys() - dropped:
                reasons[index] = Reason("variable", "a variable that it sets stays on the CPU", "")
            return Cut([groups[colour] for colour in sorted(groups)], reasons, dropped)
        for group in small:
            for index in group.operators:
                name = next((graph.tensors[t].name for t in graph.operators[index].outputs), "")
                reasons[index] = Reason(
                    "group_too_small",
                    f"its group of {len(group.operators)} operators is not worth a NeutronGraph",
                    name,
                )


def _find_unread(graph: Graph, accepted: list[bool]) -> set[int]:
    """Return the operators for the NPU whose results nothing reads: a NeutronGraph of only these would have no output.

    Operators on the CPU stay, with all that they read. Operators of variables stay because they change state.
    """
    needed = set(graph.outputs)
    found: set[int] = set()
    for index in range(len(graph.operators) - 1, -1, -1):
        op = graph.operators[index]
        if accepted[index] and op.outputs and op.code not in CODES and needed.isdisjoint(op.outputs):
            found.add(index)
        else:
            needed.update(op.inputs)
    return found


def _keep_whole(variables: Variables, reasons: dict[int, Reason]) -> None:
    """Keep all operators of a variable on the CPU where one of them stays there: a variable has one place."""
    for name, variable in variables.by_name.items():
        stays = [at for at in variable.users if at in reasons]
        if stays:
            why = f"variable {name!r} stays on the CPU: {reasons[stays[0]].message}"
            for at in variable.users:
                reasons.setdefault(at, Reason("variable", why, name, reasons[stays[0]].hint))


def _explain_split(name: str) -> Reason:
    message = f"variable {name!r} is read before and assigned after an operator on the CPU"
    return Reason(
        "variable", message, name, "let that operator run on the NPU; `openneutron report` says why it does not"
    )


def too_small(graph: Graph, group: Group, minimum: int) -> bool:
    """Return whether fewer than `minimum` operators of the group compute something."""
    working = [i for i in group.operators if graph.operators[i].code not in RENAMING]
    return len(working) < minimum


def extract(graph: Graph, group: Group) -> tuple[Graph, list[int], list[int]]:
    """Return the group as a graph, and the indices of its inputs and outputs in the whole graph."""
    members = set(group.operators)
    made = {t for i in group.operators for t in graph.operators[i].outputs}
    inputs = list(
        dict.fromkeys(
            t
            for i in group.operators
            for t in graph.operators[i].inputs
            if t >= 0 and t not in made and graph.tensors[t].data is None and not graph.tensors[t].is_variable
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
