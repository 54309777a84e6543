"""Puts back together what exporters took apart, so that a model comes out as it would straight from PyTorch.

Before:  m = MatMul(x, W); y = Add(m, b)          After:  y = Linear(x, W, b)
Before:  s = Sigmoid(x);   y = Mul(x, s)          After:  y = Silu(x)
Before:  x · (1 + Erf(x / √2)) / 2                After:  y = Gelu(x)
Before:  s = HardSigmoid(x); y = Mul(x, s)        After:  y = HardSwish(x)
"""

from __future__ import annotations

import math
from typing import Any

from openneutron.onnx.extra import need
from openneutron.onnx.ops import OWN


class _Graph:
    """Who makes and who reads each value of a graph."""

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

    def only(self, name: str, op_type: str) -> Any:
        """The single reader of a value, when it is of that operator and nothing else sees the value."""
        readers = self.readers.get(name, [])
        if name in self.leaving or len(readers) != 1:
            return None
        return readers[0] if readers[0].op_type == op_type and not readers[0].domain else None

    def made_by(self, name: str, op_type: str) -> Any:
        """The node that makes a value, when it is of that operator and only this value's one reader sees it."""
        node = self.maker.get(name)
        if node is None or node.op_type != op_type or node.domain or name in self.leaving:
            return None
        return node if len(self.readers.get(name, [])) == 1 else None

    def constant(self, name: str) -> Any:
        """The data of a stored tensor or of a Constant node, None for anything else."""
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
            return None  # reading it for the program says what is wrong

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a stored tensor."""
        proto = self.stored.get(name)
        return tuple(proto.dims) if proto is not None else None

    def number(self, name: str) -> float | None:
        """A constant of one element."""
        data = self.constant(name) if name in self.stored or name in self.maker else None
        return float(data.reshape(-1)[0]) if data is not None and data.size == 1 and data.dtype.kind == "f" else None

    def replace(self, last: Any, others: list[Any], op_type: str, inputs: list[str]) -> None:
        """Turn the last node of a pattern into one operator, and drop the others."""
        last.op_type, last.domain = op_type, OWN
        del last.input[:]
        last.input.extend(inputs)
        del last.attribute[:]
        self.gone.update(id(node) for node in others)


def fuse(graph: Any) -> int:
    """Rewrite a graph in place; returns how many patterns were found."""
    found = _Graph(graph)
    count = 0
    for node in list(graph.node):
        if id(node) in found.gone:
            continue
        for pattern in (_linear, _silu, _gelu, _hard_swish):
            if pattern(found, node):
                count += 1
                break
    if found.gone:
        kept = [type(node).FromString(node.SerializeToString()) for node in graph.node if id(node) not in found.gone]
        del graph.node[:]
        graph.node.extend(kept)
    return count


def _linear(graph: _Graph, node: Any) -> bool:
    if node.op_type != "Add" or node.domain:
        return False
    for product, bias in (tuple(node.input), tuple(node.input)[::-1]):
        matmul = graph.made_by(product, "MatMul")
        weight = graph.shape(matmul.input[1]) if matmul is not None else None
        if weight is not None and len(weight) == 2 and graph.shape(bias) == (weight[1],):
            graph.replace(node, [matmul], "Linear", [*matmul.input, bias])
            return True
    return False


def _silu(graph: _Graph, node: Any) -> bool:
    if node.op_type != "Mul" or node.domain:
        return False
    for x, gate in (tuple(node.input), tuple(node.input)[::-1]):
        sigmoid = graph.made_by(gate, "Sigmoid")
        if sigmoid is not None and sigmoid.input[0] == x:
            graph.replace(node, [sigmoid], "Silu", [x])
            return True
    return False


def _hard_swish(graph: _Graph, node: Any) -> bool:
    if node.op_type != "Mul" or node.domain:
        return False
    for x, gate in (tuple(node.input), tuple(node.input)[::-1]):
        hard = graph.made_by(gate, "HardSigmoid")
        if hard is not None and hard.input[0] == x:
            numbers = {one.name: one.f for one in hard.attribute}
            if abs(numbers.get("alpha", 0.2) - 1 / 6) < 1e-6 and numbers.get("beta", 0.5) == 0.5:
                graph.replace(node, [hard], "HardSwish", [x])
                return True
    return False


def _factors(graph: _Graph, name: str) -> tuple[list[str], float, list[Any]]:
    """A value as a product: what is computed, the constant factor, and the nodes that multiply."""
    node = graph.made_by(name, "Mul")
    if node is None:
        return [name], 1.0, []
    parts: list[str] = []
    factor, nodes = 1.0, [node]
    for one in node.input:
        number = graph.number(one)
        if number is not None:
            factor *= number
        else:
            inner, more, deeper = _factors(graph, one)
            parts, factor, nodes = parts + inner, factor * more, nodes + deeper
    return parts, factor, nodes


def _gelu(graph: _Graph, node: Any) -> bool:
    """x · ½ · (1 + erf(x / √2)), in whatever order the factors were multiplied."""
    if node.op_type != "Mul" or node.domain:
        return False
    parts: list[str] = []
    nodes: list[Any] = []
    factor = 1.0
    for one in node.input:
        number = graph.number(one)
        if number is not None:
            factor *= number
            continue
        inner, more, deeper = _factors(graph, one)
        parts, factor, nodes = parts + inner, factor * more, nodes + deeper
    if len(parts) != 2 or not math.isclose(factor, 0.5, rel_tol=1e-5):
        return False
    for x, other in (tuple(parts), tuple(parts)[::-1]):
        add = graph.made_by(other, "Add")
        if add is None:
            continue
        erf = next((graph.made_by(one, "Erf") for one in add.input if graph.made_by(one, "Erf") is not None), None)
        one = next((graph.number(name) for name in add.input if graph.number(name) is not None), None)
        if erf is None or one != 1.0:
            continue
        scaled = graph.maker.get(erf.input[0])
        if scaled is None or scaled.op_type not in ("Div", "Mul") or scaled.input[0] != x:
            continue
        number = graph.number(scaled.input[1])
        wanted = math.sqrt(2) if scaled.op_type == "Div" else math.sqrt(0.5)
        if number is not None and math.isclose(number, wanted, rel_tol=1e-4):
            gone = [*nodes, add, erf]
            if graph.made_by(erf.input[0], scaled.op_type) is not None:
                gone.append(scaled)
            graph.replace(node, gone, "Gelu", [x])
            return True
    return False
