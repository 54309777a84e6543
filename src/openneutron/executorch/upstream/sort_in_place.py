"""Sort a graph by moving its nodes, not by copying all of them.

Replaces: `legalize_graph` in ExecuTorch's `lowered_backend_module`, which takes one partition after the other out of a
program and sorts the rest anew each time, copying every node for every partition. The order is torch's to the last
node, and so are the orders of readers and the names, which decide the order of what is sorted next.
Saves: see `python benchmarks/upstream.py`; the more partitions, the more.
Knows: torch 2.13, ExecuTorch 1.5.
Otherwise: torch's own sort.

Example:
    >>> with sort_in_place():
    ...     manager.to_backend(partitioner)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from unittest.mock import patch

from executorch.exir import lowered_backend_module
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.tools_common import legalize_graph

from openneutron.executorch.upstream.switch import Expected, replaces


@replaces(
    "torch",
    Expected("executorch.exir.lowered_backend_module", "legalize_graph", ("gm",)),
    Expected("torch.fx.passes.tools_common", "legalize_graph", ("gm",)),
    Expected("torch.fx.graph", "_Namespace.associate_name_with_obj", ("self", "name", "obj")),
    Expected("torch.fx.graph", "_FindNodesLookupTable.insert", ("self", "node")),
)
def sort_in_place() -> Iterator[None]:
    """Replace the sort with which ExecuTorch takes partitions out."""
    with patch.object(lowered_backend_module, "legalize_graph", sort):
        yield


def sort(module: GraphModule) -> GraphModule:
    """Sort as torch's `legalize_graph` does: a node follows the last of its inputs, ties in the order of the inputs."""
    graph = module.graph
    order = _order(graph)
    # Each copy would be named in turn. Symbolic sizes go first there; here shapes are static.
    names = type(graph._graph_namespace)()
    if len(order) < len(graph.nodes) or any(names.create_name(node.name, None) != node.name for node in order):
        return legalize_graph(module)
    known = type(graph._find_nodes_lookup_table)()
    for node in order:
        node.users.clear()
    end = graph._root
    for node in order:
        end.prepend(node)
        known.insert(node)
        names.associate_name_with_obj(node.name, node)
        for source in node._input_nodes:
            source.users[node] = None
    graph._graph_namespace, graph._find_nodes_lookup_table = names, known
    module.recompile()
    return module


def _order(graph: Graph) -> list[Node]:
    waits_for = dict.fromkeys(graph.nodes, 0)
    for node in graph.nodes:
        for user in node.users:
            waits_for[user] += 1
    ready = deque(node for node, count in waits_for.items() if not count)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            waits_for[user] -= 1
            if not waits_for[user]:
                ready.append(user)
    return order
