"""Producer and readers of each value of a graph, for the fusion patterns."""

from __future__ import annotations

from typing import Any

from openneutron.extras import need
from openneutron.onnx.ops import OWN


class Graph:
    """Producer and readers of each value of a graph."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.maker = {name: node for node in graph.node for name in node.output if name}
        self.readers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            for attribute in node.attribute:
                for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                    for deep in inner.node:
                        for name in deep.input:
                            self.readers.setdefault(name, []).append(deep)
        self.leaving = {one.name for one in graph.output}
        self.stored = {one.name: one for one in graph.initializer}
        self.gone: set[int] = set()
        self.fresh = 0

    def made_by(self, name: str, op_type: str) -> Any:
        """Return the node that makes a value, if it has that operator and the value has only one reader."""
        node = self.maker.get(name)
        if node is None or node.op_type != op_type or node.domain or name in self.leaving:
            return None
        return node if len(self.readers.get(name, [])) == 1 else None

    def constant(self, name: str) -> Any:
        """Return the data of a stored tensor or of a Constant node, None for anything else."""
        onnx = need("onnx")
        proto = self.stored.get(name)
        if proto is None:
            node = self.maker.get(name)
            if node is None or node.op_type != "Constant" or not node.attribute or not node.attribute[0].HasField("t"):
                return None
            proto = node.attribute[0].t
        try:
            return onnx.numpy_helper.to_array(proto)
        except Exception:
            return None  # the importer reports the error

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a stored tensor."""
        proto = self.stored.get(name)
        return tuple(proto.dims) if proto is not None else None

    def store(self, data: Any, like: str) -> str:
        """Store a new tensor, named after another; returns its name."""
        self.fresh += 1
        proto = need("onnx").numpy_helper.from_array(data, f"{like}/fused_{self.fresh}")
        self.graph.initializer.append(proto)
        self.stored[proto.name] = proto
        return str(proto.name)

    def replace(self, last: Any, others: list[Any], op_type: str, inputs: list[str]) -> None:
        """Turn the last node of a pattern into one operator, and remove the others."""
        last.op_type, last.domain = op_type, OWN
        del last.input[:]
        last.input.extend(inputs)
        del last.attribute[:]
        self.gone.update(id(node) for node in others)
        for name in inputs:
            left = [one for one in self.readers.get(name, []) if one is not last and id(one) not in self.gone]
            self.readers[name] = [*left, last]
