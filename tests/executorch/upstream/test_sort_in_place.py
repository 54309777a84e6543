"""Graphs sorted in place are those that torch makes anew."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from executorch.exir import lowered_backend_module
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.tools_common import legalize_graph

from openneutron.executorch.upstream.sort_in_place import sort, sort_in_place


def _tangled(seed: int) -> GraphModule:
    """Sums of earlier values, later put in any order, some of them taken out again."""
    chance, graph = random.Random(seed), Graph()
    nodes: list[Node] = [graph.placeholder(name) for name in ("x", "y", "x_1")]
    for _ in range(60):
        nodes.append(graph.call_function(torch.add, tuple(chance.choices(nodes, k=2))))
    graph.output(tuple(nodes[-3:]))
    for node in reversed(nodes[3:]):
        if not node.users:
            graph.erase_node(node)
    calls = [node for node in graph.nodes if node.op == "call_function"]
    for node in chance.sample(calls, len(calls)):
        next(iter(graph.nodes)).append(node)
    return GraphModule(torch.nn.Module(), graph)


def _shown(module: GraphModule) -> list[Any]:
    """Nodes with their readers, what is found by target, and what new nodes would be called."""
    graph = module.graph
    nodes = [(node.name, str(node.args), [user.name for user in node.users]) for node in graph.nodes]
    found = [node.name for node in graph.find_nodes(op="call_function", target=torch.add, sort=False)]
    new = [graph._graph_namespace.create_name(name, None) for name in ("add", "x", "y_1")]
    return [nodes, found, new]


@pytest.mark.parametrize("seed", range(5))
def test_order_readers_and_names_are_those_of_torch(seed: int) -> None:
    ours, theirs = sort(_tangled(seed)), legalize_graph(_tangled(seed))
    assert _shown(ours) == _shown(theirs)
    ours.graph.lint()
    x = torch.ones(1)
    assert ours(x, 2 * x, 3 * x) == theirs(x, 2 * x, 3 * x)


def test_nodes_stay_themselves() -> None:
    module = _tangled(0)
    before = set(module.graph.nodes)
    assert set(sort(module).graph.nodes) == before


def test_a_circle_is_refused() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_function(torch.neg, (x,))
    second = graph.call_function(torch.neg, (first,))
    graph.output(second)
    module = GraphModule(torch.nn.Module(), graph)
    first.args = (second,)
    with pytest.raises(RuntimeError, match="cycles"):
        sort(module)


def test_executorch_is_itself_again() -> None:
    with sort_in_place():
        assert lowered_backend_module.legalize_graph is sort
    assert lowered_backend_module.legalize_graph is legalize_graph
