"""Convert a calibrated module with less work for each node.

Replaces: `NodeSource.__deepcopy__` of torch, because the conversion copies the history of every observer in depth,
twice, and nobody changes a history; and two methods of torchao's `ConstantFolder`, which walks all nodes to fold the
quantizing of weights, though almost none is constant, and takes the arguments of each apart twice. A recurrent layer
has a dozen nodes for each step. The folder also computes what it does not keep, the float form of quantized weights, and
quantizes a matrix as a whole: its intermediate values take several times the matrix's own memory.
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
from typing import Any, Final
from unittest.mock import patch

import torch
from torch.fx import Node
from torch.fx.traceback import NodeSource

from openneutron.executorch.upstream.switch import Expected, replaces

_FOLDER = "torchao.quantization.pt2e.constant_fold"
_AT_ONCE: Final = 1 << 20  # weights: their intermediate values take a few dozen bytes each


@replaces(
    "torchao",
    Expected("torch.fx.traceback", "NodeSource.__init__"),
    Expected(_FOLDER, "ConstantFolder.node_to_last_non_output_use", ("self",)),
    Expected(_FOLDER, "ConstantFolder.run_node", ("self", "node")),
    Expected(_FOLDER, "ConstantFolder.is_impure", ("self", "node")),
    Expected(_FOLDER, "ConstantFolder.call_function", ("self", "target", "args", "kwargs")),
)
def convert_faster() -> Iterator[None]:
    """Replace the four methods."""
    folder = import_module(_FOLDER).ConstantFolder
    with (
        patch.object(NodeSource, "__deepcopy__", _as_it_is, create=True),
        patch.object(folder, "node_to_last_non_output_use", _last_uses),
        patch.object(folder, "run_node", _known_or_not(folder.run_node)),
        patch.object(folder, "call_function", _by_channels(folder.call_function)),
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
        if node.op == "call_function" and folder.is_impure(node):
            return folder.unknown_value
        return run_node(folder, node)

    return run


def _by_channels(call_function: Callable[..., Any]) -> Callable[..., Any]:
    def call(folder: Any, target: Any, args: Any, kwargs: Any) -> Any:
        if target is not torch.ops.quantized_decomposed.quantize_per_channel.default or args[0].numel() <= _AT_ONCE:
            return call_function(folder, target, args, kwargs)
        weights, scales, zero_points, axis, least, most, dtype = args
        found = torch.empty_like(weights, dtype=dtype)
        step = max(1, _AT_ONCE * weights.shape[axis] // weights.numel())
        for first in range(0, weights.shape[axis], step):
            count = min(step, weights.shape[axis] - first)
            part = (one.narrow(0, first, count) for one in (scales, zero_points))
            piece = (weights.narrow(axis, first, count), *part, axis, least, most, dtype)
            found.narrow(axis, first, count).copy_(call_function(folder, target, piece, kwargs))
        return found

    return call
