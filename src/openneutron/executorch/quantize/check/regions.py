"""Find the regions that a pass rewrote by comparing the graph before and after it; passes report nothing themselves.

An operator that the pass left alone reads a value in some argument. If it now reads another node, the new node replaces the
old one: the two are an output of the region, and must be equal.

    before:  a → exp → div → linear         the linear layer stays and read div; now it reads softmax:
    after:   a → softmax → linear           Boundary(old=div, new=softmax, readers=[linear])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from openneutron.executorch.fx import value_of


@dataclass(frozen=True)
class Call:
    """A node's target and arguments when the snapshot was taken."""

    target: Any
    args: Any
    kwargs: Any


@dataclass(eq=False)
class Boundary:
    """An output of a rewritten region:

    `readers` read `old` before and `new` now; both are one node if it was edited in place.
    """

    old: Node
    new: Node
    readers: list[Node] = field(default_factory=list)


def snapshot(graph: Graph) -> dict[Node, Call]:
    """Return the target and arguments of every node."""
    return {node: Call(node.target, node.args, node.kwargs) for node in graph.nodes}


def boundaries(before: dict[Node, Call], graph: Graph) -> list[Boundary]:
    """Return the outputs of all regions that differ from the snapshot, in order of execution.

    Example:
        >>> before = snapshot(model.graph)
        >>> recognize_softmax(model)
        >>> [(one.old.name, one.new.name) for one in boundaries(before, model.graph)]
        [('div', 'softmax')]
    """
    found: dict[tuple[Node, Node], Boundary] = {}
    for node in _changed_nodes(before, graph):
        for old, new in _replaced_inputs(before[node], node) or ():
            found.setdefault((old, new), Boundary(old, new)).readers.append(node)
    for node in edited_nodes(before, graph):
        # An old node that now has only new readers counts as new.
        readers = [user for user in node.users if user in before and _reads(before[user], node)]
        if readers or node.op == "output":
            found[node, node] = Boundary(node, node, readers)
    place = {node: at for at, node in enumerate(graph.nodes)}
    return sorted(found.values(), key=lambda one: place[one.new])


def edited_nodes(before: dict[Node, Call], graph: Graph) -> list[Node]:
    """Return the nodes of the snapshot whose call changed in more than which nodes it reads."""
    return [node for node in _changed_nodes(before, graph) if _replaced_inputs(before[node], node) is None]


def _changed_nodes(before: dict[Node, Call], graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        call = before.get(node)
        if call is None or (call.target is node.target and call.args is node.args and call.kwargs is node.kwargs):
            continue
        yield node


def _replaced_inputs(call: Call, node: Node) -> list[tuple[Node, Node]] | None:
    """Return the pairs of old and new inputs of the same shape and type; None if the call differs in anything else."""
    if call.target is not node.target:
        return None
    try:
        pairs = list(_pairs((call.args, call.kwargs), (node.args, node.kwargs)))
    except _Differs:
        return None
    return pairs if all(_is_like(old, new) for old, new in pairs) else None


class _Differs(Exception):
    """Raised when two argument lists differ in more than the nodes they name."""


def _pairs(old: Any, new: Any) -> Iterator[tuple[Node, Node]]:
    if old is new:
        return
    if isinstance(old, Node) and isinstance(new, Node):
        yield old, new
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            yield from _pairs(one, other)
    elif isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name, one in old.items():
            yield from _pairs(one, new[name])
    elif isinstance(old, Node) or isinstance(new, Node) or old != new:
        raise _Differs


def _is_like(old: Node, new: Node) -> bool:
    """Return whether both nodes make tensors of one shape and type, as far as the graph knows."""
    first, second = value_of(old), value_of(new)
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return first is None or second is None
    return first.shape == second.shape and first.dtype == second.dtype


def _reads(call: Call, node: Node) -> bool:
    found: list[Node] = []
    torch.fx.node.map_arg((call.args, call.kwargs), found.append)
    return node in found
