"""RemoveBorderQuantize: a program that takes and gives INT8 instead of float.

Before:  q = quantize(x, s, z); d = delegate(q); y = dequantize(d)
After:   d = delegate(x), x being INT8; y = d

The scale and zero point that go are written as methods of the program, by the names that ExecuTorch's own passes give them:
`forward_input0_scale`, `forward_input0_zp`.

An input that something reads in float, or that is quantized in two ways, keeps its type, as does an output that is
computed in float; the result says which and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.fx import Node

from openneutron.executorch.fx import arguments, is_dequantize, is_quantize, operator_name, value_of


@dataclass(frozen=True)
class Border:
    """One input or output; `reason` says why it stayed as it was, "" when it is stored as INT8 now.

    `node` names the quantize or dequantize that is gone, `place` is "input0" or "output1".
    """

    name: str
    scale: float = 1.0
    zero_point: int = 0
    reason: str = ""
    node: str = ""
    place: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"{self.name} keeps its type: {self.reason}"
        return f"{self.name} is INT8 with scale {self.scale:.9g} and zero point {self.zero_point}"


def remove_border_quantize(program: ExportedProgram) -> list[Border]:
    """Edit the program in place; returns every input and output, in order."""
    graph = program.graph
    by_name = {node.name: node for node in graph.nodes}
    names = [name for name in program.graph_signature.user_inputs if name in by_name]
    found = [replace(_input(by_name[name]), place=f"input{at}") for at, name in enumerate(names)]
    output = graph.output_node()
    results = list(output.args[0])
    for position, spec in enumerate(program.graph_signature.output_specs):
        if spec.kind is not OutputKind.USER_OUTPUT or not isinstance(results[position], Node):
            continue
        number = len(found) - _inputs(program)
        border, source = _output(results[position], f"output {number}")
        found.append(replace(border, place=f"output{number}"))
        if source is not None:
            results[position] = source
            spec.arg = TensorArgument(name=source.name)
    output.args = (tuple(results),)
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    return found


def encoding_constants(borders: Sequence[Border]) -> dict[str, float | int]:
    """Return the scales and zero points of INT8 inputs and outputs by the names of the methods that tell them."""
    found: dict[str, float | int] = {}
    for one in borders:
        if not one.reason:
            found[f"forward_{one.place}_scale"] = one.scale
            found[f"forward_{one.place}_zp"] = one.zero_point
    return found


def _inputs(program: ExportedProgram) -> int:
    return len(program.graph_signature.user_inputs)


def _input(node: Node) -> Border:
    name = f"input {node.name}"
    if not node.users:
        return Border(name, reason="nothing reads it")
    encodings = set()
    for user in node.users:
        if not is_quantize(user):
            return Border(name, reason=f"{user.name} ({operator_name(user) or user.op}) reads it as it is")
        encodings.add(_encoding(user))
    if len(encodings) > 1:
        return Border(name, reason="it is quantized in more than one way")
    ((scale, zero_point, dtype),) = encodings
    first = next(iter(node.users)).name
    for user in list(node.users):
        user.replace_all_uses_with(node)
        node.graph.erase_node(user)
    node.meta["val"] = _as(value_of(node), dtype)
    node.meta.pop("tensor_meta", None)
    return Border(name, scale, zero_point, node=first)


def _output(node: Node, name: str) -> tuple[Border, Node | None]:
    if not is_dequantize(node):
        return Border(name, reason=f"{node.name} ({operator_name(node) or node.op}) makes it"), None
    source = node.args[0]
    if not isinstance(source, Node) or source.op != "call_function":
        return Border(name, reason="it is an input of the program"), None
    scale, zero_point, _ = _encoding(node)
    return Border(name, scale, zero_point, node=node.name), source


def _encoding(node: Node) -> tuple[float, int, torch.dtype]:
    given = arguments(node)
    return float(given["scale"]), int(given["zero_point"]), given["dtype"]


def _as(value: Any, dtype: torch.dtype) -> Any:
    with value.fake_mode:
        return value.to(dtype)
