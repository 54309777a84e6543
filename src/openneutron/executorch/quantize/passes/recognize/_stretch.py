"""Stretches: the part of a graph between two nodes, where nothing else comes in but constants and nothing else leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import is_static, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import tensor_of

# Softmax, normalisations and activations take up to twenty operators; a longer stretch is a network.
MOST_NODES = 32
_AHEAD = 12  # operators between what gives a stretch away and its end


@dataclass(frozen=True)
class Stretch:
    """Nodes in order of execution, from the readers of `start` to `end`."""

    model: GraphModule
    start: Node
    end: Node
    nodes: tuple[Node, ...]

    def __call__(self, x: torch.Tensor) -> torch.Tensor | None:
        """What it computes of `x`, in double precision; None where the operators do not take such a tensor."""
        values: dict[Node, Any] = {self.start: x.double()}

        def value(node: Node) -> Any:
            if node not in values:
                data = tensor_of(self.model, node)
                values[node] = data.double() if data is not None and data.is_floating_point() else data
            return values[node]

        try:
            for node in self.nodes:
                assert callable(node.target)
                values[node] = node.target(*map_arg(node.args, value), **map_arg(node.kwargs, value))
        except (RuntimeError, TypeError, IndexError):
            return None
        found = values[self.end]
        return found if isinstance(found, torch.Tensor) else None

    def constants(self) -> Iterator[float]:
        """Every number in it: arguments, and stored tensors of one element."""
        for node in self.nodes:
            yield from (float(one) for one in node.args if isinstance(one, (int, float)))
            for one in node.all_input_nodes:
                data = tensor_of(self.model, one)
                if data is not None and data.numel() == 1:
                    yield float(data)


def stretches(model: GraphModule, heart: Node, allowed: Callable[[Node], bool]) -> Iterator[Stretch]:
    """Every stretch of allowed operators around a node, those that end last first, and of these the longest first."""
    for end in reversed(_behind(heart, allowed)):
        inside, order = _before(model, end, allowed)
        if heart not in inside:
            continue
        for start in order:
            nodes = _between(model, start, end, inside)
            if nodes is not None and heart in nodes:
                yield Stretch(model, start, end, nodes)


def rewrite(
    model: GraphModule,
    names: frozenset[str],
    allowed: Callable[[Node], bool],
    operator: Callable[[Stretch], Node | None],
) -> int:
    """Replace stretches of allowed operators around those of these names; returns how many went.

    `operator` inserts the node that computes the same in front of a stretch's end, where there is one.
    """
    hearts = [node for node in model.graph.nodes if operator_name(node) in names]
    gone: set[Node] = set()
    count = 0
    for heart in hearts:
        if heart in gone:
            continue
        for stretch in stretches(model, heart, allowed):
            made = operator(stretch)
            if made is not None:
                stretch.end.replace_all_uses_with(made)
                for node in reversed(stretch.nodes):
                    model.graph.erase_node(node)
                gone.update(stretch.nodes)
                count += 1
                break
    return count


def is_float(node: Node) -> bool:
    """Whether the node is a float tensor of known shape."""
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32 and is_static(node)


def _behind(heart: Node, allowed: Callable[[Node], bool]) -> list[Node]:
    """Allowed nodes that depend on `heart` and make float tensors, in order of execution."""
    found: dict[Node, None] = {heart: None}
    ahead = [heart]
    for _ in range(_AHEAD):
        ahead = [user for node in ahead for user in node.users if user not in found and allowed(user)]
        found |= dict.fromkeys(ahead)
        if len(found) > MOST_NODES:
            break
    return sorted(node for node in found if is_float(node))


def _before(model: GraphModule, end: Node, allowed: Callable[[Node], bool]) -> tuple[set[Node], list[Node]]:
    """Allowed nodes that `end` depends on, and where a stretch could begin, the farthest first."""
    inside = {end}
    edge: dict[Node, None] = {}
    waiting = [end]
    while waiting and len(inside) <= MOST_NODES:
        for one in waiting.pop(0).all_input_nodes:
            if one in inside or tensor_of(model, one) is not None:
                continue
            if is_float(one):
                edge[one] = None
            if allowed(one):
                inside.add(one)
                waiting.append(one)
    return inside, sorted(edge)


def _between(model: GraphModule, start: Node, end: Node, inside: set[Node]) -> tuple[Node, ...] | None:
    """The nodes of a stretch in order; None where another tensor comes in or one of them is read elsewhere."""
    found = {end}
    waiting = [end]
    while waiting:
        for one in waiting.pop().all_input_nodes:
            if one is start or one in found or tensor_of(model, one) is not None:
                continue
            if one not in inside:
                return None
            found.add(one)
            waiting.append(one)
    if start in found or any(user not in found for node in found - {end} for user in node.users):
        return None
    return tuple(sorted(found))
