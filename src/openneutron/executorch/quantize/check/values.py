"""Run a graph on samples node by node, to keep some values or to compare them with those of another graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from openneutron.executorch.quantize.states import restore, states_of
from openneutron.executorch.upstream.names import tree_map

Batch = tuple[torch.Tensor, ...]
# Called with each node and its value; returns the value that readers get.
Visit = Callable[[Node, Any], Any]


def run_graph(model: GraphModule, graph: Graph, sample: Batch, visit: Visit, shown: Collection[Node] = ()) -> None:
    """Run a graph with the attributes of `model`, calling `visit` on computed values and on the attributes in `shown`."""
    _Visitor(model, graph, visit, shown).run(*copy_tensors(sample))  # a model may change its inputs in place


@contextmanager
def preserve_state(model: GraphModule) -> Iterator[None]:
    """Seed random generators before, and restore them and the model's states afterwards."""
    states = states_of(model)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield
    finally:
        restore(model, states)


@dataclass
class Seen:
    """The smallest and the largest finite value of every float node on samples, and the nodes that have minus infinity."""

    ranges: dict[Node, tuple[float, float]] = field(default_factory=dict)
    endless: set[Node] = field(default_factory=set)


def seen_ranges(model: GraphModule, samples: Sequence[Batch]) -> Seen:
    """Return what the float nodes of the current graph hold on samples."""
    found = Seen()

    def visit(node: Node, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
            finite = value if bool(torch.isfinite(value).all()) else value[torch.isfinite(value)]
            if finite.numel() < value.numel() and bool((value == -torch.inf).any()):
                found.endless.add(node)
            if finite.numel():
                low, high = map(float, torch.aminmax(finite))
                before = found.ranges.get(node, (low, high))
                found.ranges[node] = min(low, before[0]), max(high, before[1])
        return value

    with preserve_state(model):
        for sample in samples:
            run_graph(model, model.graph, sample, visit)
    return found


def copy_tensors(value: Any) -> Any:
    """Copy tensors: a later operator may change them in place."""
    return tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, value)


class _Visitor(Interpreter):
    def __init__(self, model: GraphModule, graph: Graph, visit: Visit, shown: Collection[Node]) -> None:
        super().__init__(model, graph=graph)
        self._visit, self._shown = visit, shown

    def run_node(self, n: Node) -> Any:
        """Run one node and show it to the visitor; other attributes are skipped, because weights can be large."""
        value = super().run_node(n)
        return value if n.op == "get_attr" and n not in self._shown else self._visit(n, value)
