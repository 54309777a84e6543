"""Convert a calibrated module with less work for each node.

Replaces: `NodeSource.__deepcopy__` of torch, because the conversion copies the history of every observer in depth,
twice, and nobody changes a history; and two methods of torchao's `ConstantFolder`, which walks all nodes to fold the
quantizing of weights, though almost none is constant, and takes the arguments of each apart twice. A recurrent layer
has a dozen nodes for each step.
Saves: see `python benchmarks/upstream.py`.
Knows: torchao 0.18.
Otherwise: torchao's own way.

Example:
    >>> with convert_faster():
    ...     convert_pt2e(prepared)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from unittest.mock import patch

from torch.fx import Node
from torch.fx.traceback import NodeSource

from openneutron.executorch.upstream.switch import Expected, replaces

_FOLDER = "torchao.quantization.pt2e.constant_fold"


@replaces(
    "torchao",
    Expected("torch.fx.traceback", "NodeSource.__init__"),
    Expected(_FOLDER, "ConstantFolder.node_to_last_non_output_use", ("self",)),
    Expected(_FOLDER, "ConstantFolder.run_node", ("self", "node")),
)
def convert_faster() -> Iterator[None]:
    """Replace the three methods."""
    folder = import_module(_FOLDER).ConstantFolder
    with (
        patch.object(NodeSource, "__deepcopy__", _as_it_is, create=True),
        patch.object(folder, "node_to_last_non_output_use", _last_uses),
        patch.object(folder, "run_node", _known_or_not(folder.run_node)),
    ):
        yield


def _as_it_is(source: NodeSource, memo: dict[int, Any]) -> NodeSource:
    return source


def _last_uses(folder: Any) -> dict[Node, list[Node]]:
    """The values to free after each node, those that only the output reads at once."""
    nodes = folder.module.graph.nodes
    output = next(iter(reversed(nodes)))
    uses: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        if node.op == "output":
            continue
        free = [one for one in node.all_input_nodes if one not in seen]
        seen.update(free)
        if len(node.users) == 1 and output in node.users:
            free.append(node)
        if free:
            uses[node] = free
    return uses


def _known_or_not(run_node: Callable[[Any, Node], Any]) -> Callable[[Any, Node], Any]:
    def run(folder: Any, node: Node) -> Any:
        if node.op != "output" and any(folder.env[one] is folder.unknown_value for one in node.all_input_nodes):
            return folder.unknown_value
        return run_node(folder, node)

    return run
