"""Stretches: parts of the graph between two nodes with no other inputs than constants and no other readers."""

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
_MAX_DISTANCE = 12  # operators between the one a search starts from and the end of the stretch


@dataclass(frozen=True)
class Stretch:
    """Nodes in order of execution, from the readers of `start` to `end`."""

    model: GraphModule
    start: Node
    end: Node
    nodes: tuple[Node, ...]

    def __call__(self, x: torch.Tensor) -> torch.Tensor | None:
        """Compute the stretch on `x` in double precision; None if the operators do not accept such a tensor."""
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
        """Yield every number in it: arguments, and stored tensors of one element."""
        for node in self.nodes:
            yield from (float(one) for one in node.args if isinstance(one, (int, float)))
            for one in node.all_input_nodes:
                data = tensor_of(self.model, one)
                if data is not None and data.numel() == 1:
                    yield float(data)


def stretches(model: GraphModule, heart: Node, allowed: Callable[[Node], bool]) -> Iterator[Stretch]:
    """Yield every stretch of allowed operators around a node, those with the latest end first, then the longest first."""
    for end in reversed(_behind(heart, allowed)):
        inside, order = _before(model, end, allowed)
        if heart not in inside:
            continue
        for start in order:
            nodes = _nodes_between(model, start, end, inside)
            if nodes is not None and heart in nodes:
                yield Stretch(model, start, end, nodes)


def rewrite(
    model: GraphModule,
    names: frozenset[str],
    allowed: Callable[[Node], bool],
    operator: Callable[[Stretch], Node | None],
) -> int:
    """Replace stretches of allowed operators around nodes of these names; returns the number of replacements.

    `operator` inserts an equivalent node in front of a stretch's end, if there is one.
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
    """Return whether the node is a float tensor of known shape."""
    value = value_of(node)
    return isinstance(value, torch.Tensor) and value.dtype == torch.float32 and is_static(node)


def _behind(heart: Node, allowed: Callable[[Node], bool]) -> list[Node]:
    """Return the allowed nodes that depend on `heart` and make float tensors, in order of execution."""
    found: dict[Node, None] = {heart: None}
    ahead = [heart]
    for _ in range(_MAX_DISTANCE):
        ahead = [user for node in ahead for user in node.users if user not in found and allowed(user)]
        found |= dict.fromkeys(ahead)
        if len(found) > MOST_NODES:
            break
    return sorted(node for node in found if is_float(node))


def _before(model: GraphModule, end: Node, allowed: Callable[[Node], bool]) -> tuple[set[Node], list[Node]]:
    """Return the allowed nodes that `end` depends on, and the possible starts of a stretch, the farthest first."""
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


def _nodes_between(model: GraphModule, start: Node, end: Node, inside: set[Node]) -> tuple[Node, ...] | None:
    """Return the nodes of a stretch in order; None if it has another tensor input or one of its values has other readers."""
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
