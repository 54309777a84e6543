"""Tabulate: float operators between one stored value and its quantize are a function of 256 values, so they become a table.

    x = dequantize(q); a = exp(x); b = log1p(a); c = quantize(b)    →    c = table[q]

What lies between may be any number of operators that work element by element, with numbers or constants of one element
beside the tensor: softplus is five of them after decomposition. The table is computed by PyTorch's own operators, so it
equals the quantized PyTorch graph bit for bit. Where a function has no value (the logarithm of -1) the table holds 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.fx import Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import arguments, is_dequantize, is_quantize, operator_name, shape_of
from openneutron.executorch.lower.encoding import Constants, Encoding, encoding_of
from openneutron.executorch.operators import lowerings
from openneutron.executorch.upstream.names import aten_operator
from openneutron.litert.graph import DType
from openneutron.litert.table_composite import ENTRIES

# Element by element too, though PyTorch does not tag them so.
_COPIES = frozenset({
    "dim_order_ops._to_dim_order_copy.default", "dim_order_ops._clone_dim_order.default", "aten.clone.default",
    "aten.alias_copy.default",
})  # fmt: skip
# The same number everywhere, whatever the shape.
_FILLS = {"aten.full.default": "fill_value", "aten.full_like.default": "fill_value", "aten.scalar_tensor.default": "s"}


@dataclass(frozen=True)
class Tabulated:
    """A quantize whose result is a table of the stored value `source`; `chain` are the operators in between."""

    source: Node
    encoding: Encoding
    chain: tuple[Node, ...]

    def entries(self, quantize: Node, constants: Constants) -> npt.NDArray[np.int8]:
        """The results for -128 to 127."""
        scale, zero = self.encoding.quantization.scalar
        stored = torch.arange(ENTRIES, dtype=torch.float32) - ENTRIES // 2
        values: dict[Node, Any] = {}

        def value(node: Node) -> Any:
            if node in values:
                return values[node]
            if is_dequantize(node):
                return _constant(node, constants) if node.args[0] in constants else (stored - zero) * scale
            return _scalar(constants.array(node))

        for node in self.chain:
            values[node] = _evaluate(node, value)
        result = values[arguments(quantize)["input"]]
        result = torch.nan_to_num(result.to(torch.float32).expand(ENTRIES), nan=0.0, posinf=np.inf, neginf=-np.inf)
        to = encoding_of(quantize, constants)
        inverse = 1.0 / torch.tensor(to.quantization.scale[0], dtype=torch.float32)
        rounded = torch.clamp(torch.round(result * inverse) + to.quantization.zero_point[0], to.low, to.high)
        return rounded.to(torch.int8).numpy()

    def text(self, constants: Constants) -> str:
        """The operators, one per line, from which `certify/functions.py` computes the table again."""
        names: dict[Node, str] = {}

        def value(given: Any) -> str:
            if not isinstance(given, Node):
                return repr(given) if isinstance(given, (bool, int, float, str)) else "None"
            if given in names:
                return names[given]
            if is_dequantize(given):
                return repr(float(_constant(given, constants))) if given.args[0] in constants else "x"
            return repr(float(_scalar(constants.array(given))))

        lines = []
        for node in self.chain:
            given = ",".join(f"{key}={value(one)}" for key, one in arguments(node).items())
            names[node] = f"v{len(names)}"
            lines.append(f"{names[node]}={operator_name(node)}({given})")
        return "\n".join(lines)


def find_tables(nodes: Sequence[Node], constants: Constants) -> dict[Node, Tabulated]:
    """The quantizes that must become tables: what lies before them has no other form, or a worse one."""
    sources: dict[Node, tuple[Node, Encoding] | None] = {}  # float node → what it depends on; None for constants
    chains: dict[Node, dict[Node, None]] = {}
    found: dict[Node, Tabulated] = {}
    for node in nodes:
        if is_quantize(node):
            last = arguments(node)["input"]
            origin = sources.get(last)
            if (
                origin is not None
                and chains[last]
                and _to_bytes(node)
                and any(_needs_table(one, constants) for one in chains[last])
            ):
                found[node] = Tabulated(*origin, tuple(chains[last]))
        elif is_dequantize(node):
            _enter(node, constants, sources, chains)
        elif _is_pointwise(node):
            _follow(node, constants, sources, chains)
    return found


def _to_bytes(quantize: Node) -> bool:
    """Tables hold INT8; what is stored in 16 bits is computed."""
    return bool(arguments(quantize)["dtype"] == torch.int8)


def inside_of(tables: dict[Node, Tabulated]) -> set[Node]:
    """The operators that nothing but tables reads, so that they need no form of their own."""
    inside: set[Node] = set()
    for table in tables.values():
        for node in reversed(table.chain):
            if all(user in inside or user in tables for user in node.users):
                inside.add(node)
    return inside


def _enter(node: Node, constants: Constants, sources: dict[Node, Any], chains: dict[Node, dict[Node, None]]) -> None:
    stored = node.args[0]
    if stored in constants:
        if np.prod(shape_of(node), dtype=int) == 1:
            sources[node], chains[node] = None, {}
        return
    encoding = encoding_of(node, constants)
    if encoding.dtype is DType.INT8 and not encoding.quantization.per_channel:
        assert isinstance(stored, Node)
        sources[node], chains[node] = (stored, encoding), {}


def _follow(node: Node, constants: Constants, sources: dict[Node, Any], chains: dict[Node, dict[Node, None]]) -> None:
    fills = operator_name(node) in _FILLS
    inputs = [] if fills else node.all_input_nodes
    for source in inputs:
        if source in constants and np.prod(shape_of(source), dtype=int) == 1:
            sources[source], chains[source] = None, {}
    if not all(source in sources for source in inputs):
        return
    origins = {sources[source] for source in inputs} - {None}
    origin = next(iter(origins), None)
    if len(origins) > 1 or (origin is not None and shape_of(node) != shape_of(origin[0])):
        return
    sources[node] = origin
    chains[node] = {one: None for source in inputs for one in chains[source]} | {node: None}


def _is_pointwise(node: Node) -> bool:
    name = operator_name(node)
    if name in _COPIES or name in _FILLS:
        return True
    tags = getattr(aten_operator(node.target), "tags", ())
    return torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags


def _needs_table(node: Node, constants: Constants) -> bool:
    """Whether an operator has no LiteRT form, one that is worse than a table, or operands LiteRT cannot take."""
    rule = lowerings().get(operator_name(node))
    if rule is None or (rule.table is not None and rule.table(node)):
        return True
    return any(source in constants for source in node.all_input_nodes)


def _evaluate(node: Node, value: Any) -> torch.Tensor:
    name = operator_name(node)
    given = arguments(node)
    if name in _FILLS:
        return torch.tensor(given[_FILLS[name]])
    if name in _COPIES:
        source: torch.Tensor = value(given["self"])
        return source if given.get("dtype") is None else source.to(given["dtype"])
    args, kwargs = map_arg((node.args, node.kwargs), value)
    made: torch.Tensor = aten_operator(node.target)(*args, **kwargs)
    return made


def _constant(node: Node, constants: Constants) -> torch.Tensor:
    encoding = encoding_of(node, constants)
    scale, zero = encoding.quantization.scalar
    source = node.args[0]
    assert isinstance(source, Node)
    return (_scalar(constants.array(source)).to(torch.float32) - zero) * scale


def _scalar(data: npt.NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(data)).reshape(())
