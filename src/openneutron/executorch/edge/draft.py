"""Draft of an Edge graph: calls are appended one by one, with the values and metadata that ExecuTorch would give them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.fx.traceback import NodeSource, NodeSourceAction

from openneutron.executorch.fx import value_of
from openneutron.executorch.upstream.edge_names import edge_operator
from openneutron.executorch.upstream.names import OpOverload

_CARRIED = ("stack_trace", "nn_module_stack", "torch_fn", "custom")  # metadata that readers of Edge nodes use


class Unknown(Exception):
    """Raised for what only ExecuTorch's retracing can convert; the message names it."""


@dataclass
class Draft:
    """The graph, and the Edge node of each ATen node; `source` is the node being converted."""

    fake_mode: Any
    graph: Graph = field(default_factory=Graph)
    made: dict[Node, Node] = field(default_factory=dict)
    source: Node = field(init=False)

    def of(self, given: Any) -> Any:
        """Return the arguments with ATen nodes replaced by Edge nodes."""
        return map_arg(given, self.made.__getitem__)

    def call(self, target: OpOverload, *args: Any, **kwargs: Any) -> Node:
        """Append a call of Edge nodes; its value comes from running the operator on fake tensors."""
        return self._append(target, args, kwargs, self._run(target, args, kwargs))

    def call_like(self, target: OpOverload, *args: Any, **kwargs: Any) -> Node:
        """Append a call whose result equals the source's value; recomputes the value if its inputs have other strides."""
        known = all(_same_layout(one, self.made[one]) for one in self.source.all_input_nodes)
        value = value_of(self.source) if known else self._run(target, args, kwargs)
        return self._append(target, args, kwargs, value)

    def item(self, several: Node, at: int) -> Node:
        """Return one of the results of a call with several."""
        made = self.graph.call_function(operator.getitem, (several, at))
        made.meta = self._meta(value_of(several)[at])
        return made

    def _run(self, target: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        given, named = map_arg((args, dict(kwargs)), value_of)
        with self.fake_mode, torch.no_grad():
            return target(*given, **named)

    def _append(self, target: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any) -> Node:
        made = self.graph.call_function(edge_operator(target), args, dict(kwargs))
        made.meta = self._meta(value)
        return made

    def _meta(self, value: Any) -> dict[str, Any]:
        known = self.source.meta
        carried = {name: known[name] for name in _CARRIED if name in known}
        return {**carried, "val": value, "from_node": [first_source(self.source)]}


def first_source(node: Node) -> NodeSource:
    """Return where a node was first captured.

    The rest of its history is not read, and would be copied at every retrace.
    """
    history = node.meta.get("from_node")
    if not history:
        return NodeSource(node, "openneutron", NodeSourceAction.CREATE)
    found: NodeSource = history[-1]
    while found.from_node:
        found = found.from_node[-1]
    return found


def _same_layout(given: Node, here: Node) -> bool:
    before, after = value_of(given), value_of(here)
    if before is after:
        return True
    return isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor) and before.stride() == after.stride()
