"""Long quantized Edge programs, made by repeating a part of a short one: exporting one of 10,000 nodes takes minutes."""

from __future__ import annotations

from typing import Any

import torch
from executorch.exir import to_edge
from torch import nn
from torch.export.graph_signature import TensorArgument
from torch.fx import Graph, GraphModule, Node

from openneutron.executorch.fx import is_quantize
from openneutron.executorch.partition.passes.split_dequantize import split_dequantize
from openneutron.executorch.pipeline import quantize


class Links(nn.Module):
    """Two sigmoids, whose results have equal parameters, with a convolution between: everything after the first repeats."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(2, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.conv(torch.sigmoid(x)))


def quantized_chain(count: int) -> Any:
    """Return an Edge program of about `count` nodes, all of which can be delegated.

    Example:
        >>> len(quantized_chain(1000).graph.nodes)
        1141
    """
    image = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
    exported = quantize(Links().eval(), (image,), [(image,)]).program
    program = to_edge(exported).exported_program()
    old = program.graph
    calls = [node for node in old.nodes if node.op == "call_function"]
    quantizes = [node for node in calls if is_quantize(node)]
    first, last = quantizes[1], quantizes[-1]
    piece = calls[calls.index(first) + 1 : calls.index(last) + 1]
    graph, copies = Graph(), dict[Node, Node]()
    for node in old.nodes:
        if node in piece:
            if node is piece[-1]:
                _repeat(graph, piece, first, copies, max(1, (count - len(old.nodes)) // len(piece) + 1))
            continue
        copies[node] = graph.node_copy(node, lambda source: copies[source])
    program.graph_signature.output_specs[0].arg = TensorArgument(name=graph.output_node().args[0][0].name)
    return split_dequantize(program._update(GraphModule(program.graph_module, graph), program.graph_signature))


def _repeat(graph: Graph, piece: list[Node], first: Node, copies: dict[Node, Node], times: int) -> None:
    """Insert copies of `piece` after it; each copy reads the result of the one before in place of `first`."""
    for _ in range(times):
        inner: dict[Node, Node] = {}
        for node in piece:
            inner[node] = graph.node_copy(
                node, lambda source, inner=inner: (inner if source in inner else copies)[source]
            )
        copies[first] = inner[piece[-1]]
    copies[piece[-1]] = copies[first]
