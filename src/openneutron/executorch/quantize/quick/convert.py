"""Quick conversion: what torchao's conversion does for each node of a model, in less time and to the same graph.

It copies the history of every observer in depth, twice, though nobody changes a history. To fold the quantizing of weights
it walks all nodes, of which almost none is constant, and takes the arguments of each apart two times over. A recurrent layer
has a dozen nodes for each of its steps. Other versions of torch, which may not have these functions, are left as they are.

Example:
    >>> with quick_convert():
    ...     convert_pt2e(prepared)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from torch.fx import Node
from torch.fx.traceback import NodeSource
from torchao.quantization.pt2e.constant_fold import ConstantFolder


@contextmanager
def quick_convert() -> Iterator[None]:
    """Replace three functions; what was there comes back at the end."""
    with ExitStack() as replaced:
        replaced.enter_context(patch.object(NodeSource, "__deepcopy__", _as_it_is, create=True))
        if hasattr(ConstantFolder, "node_to_last_non_output_use"):
            replaced.enter_context(patch.object(ConstantFolder, "node_to_last_non_output_use", _last_uses))
            replaced.enter_context(patch.object(ConstantFolder, "run_node", _known_or_not(ConstantFolder.run_node)))
        yield


def _as_it_is(source: NodeSource, memo: dict[int, Any]) -> NodeSource:
    return source


def _last_uses(folder: ConstantFolder) -> dict[Node, list[Node]]:
    """Which values are free after each node; those that only the output reads, at once."""
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


def _known_or_not(run_node: Callable[[ConstantFolder, Node], Any]) -> Callable[[ConstantFolder, Node], Any]:
    def run(folder: ConstantFolder, node: Node) -> Any:
        if node.op != "output" and any(folder.env[one] is folder.unknown_value for one in node.all_input_nodes):
            return folder.unknown_value
        return run_node(folder, node)

    return run
