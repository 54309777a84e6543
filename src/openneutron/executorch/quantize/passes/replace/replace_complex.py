"""ReplaceComplex: computes with real and imaginary parts, as rotary positions and spectra need it.

Before:  y = view_as_real(view_as_complex(x) * turns[position])
After:   a, b = x[..., 0], x[..., 1];  c, d = turns.real[position], turns.imag[position]
         y = stack([a c - b d, a d + b c], -1)

Before:  y = abs(stft(x))
After:   a, b = products of x with sines and cosines; y = sqrt(a a + b b)
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from openneutron.executorch.fx import operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.replace._fourier import is_transform, parts_of_transform

# These operators only move values, so they are applied to the real and the imaginary part alike.
_MOVES: Final = frozenset(
    f"aten.{name}"
    for name in (
        "view.default", "reshape.default", "_unsafe_view.default", "expand.default", "unsqueeze.default", "squeeze.dim",
        "squeeze.dims", "transpose.int", "permute.default", "slice.Tensor", "select.int", "index.Tensor",
        "index_select.default", "clone.default", "contiguous.default", "alias.default", "narrow.default",
    )
)  # fmt: skip
_MADE, _PRODUCT, _CONJUGATE = "aten.view_as_complex.default", "aten.mul.Tensor", "aten._conj.default"
# Real values that are made of complex ones.
_SHOWN: Final = frozenset(f"aten.{name}.default" for name in ("view_as_real", "abs", "real", "imag"))
_aten = torch.ops.aten
_Parts = tuple[Node, Node]


def replace_complex(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten calls, 0 where one of them has no real form."""
    found = [node for node in model.graph.nodes if _is_complex(node)]
    if not found or not all(_is_known(model, node) for node in found):
        return 0
    parts: dict[Node, _Parts] = {}
    for node in list(model.graph.nodes):
        if _is_complex(node):
            parts[node] = _parts_of(model, node, parts)
        elif operator_name(node) in _SHOWN and node.args[0] in parts:
            node.replace_all_uses_with(_shown(model, node, *parts[node.args[0]]))  # type: ignore[index]
    model.graph.eliminate_dead_code()
    return len(found)


def _is_complex(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.complex64


def _shown(model: GraphModule, node: Node, real: Node, imaginary: Node) -> Node:
    call, name = Insert(model, node), operator_name(node).split(".")[1]
    if name in ("real", "imag"):
        return real if name == "real" else imaginary
    if name == "view_as_real":
        return call(_aten.stack.default, [real, imaginary], -1)
    squares = [call(_aten.mul.Tensor, one, one) for one in (real, imaginary)]
    return call(_aten.sqrt.default, call(_aten.add.Tensor, *squares))


def _is_known(model: GraphModule, node: Node) -> bool:
    """Return whether the parts of a complex value can be computed, and nothing but them is read."""
    made = node.op == "get_attr" or operator_name(node) in (_MADE, _PRODUCT, _CONJUGATE, *_MOVES)
    made = made or is_transform(model, node)
    read = all(_is_complex(user) or operator_name(user) in _SHOWN for user in node.users)
    numbers = operator_name(node) != _PRODUCT or all(isinstance(one, Node) for one in node.args[:2])
    return made and read and numbers


def _parts_of(model: GraphModule, node: Node, parts: dict[Node, _Parts]) -> _Parts:
    call, name = Insert(model, node), operator_name(node)
    if node.op == "get_attr":
        data: Any = tensor_of(model, node)
        with model.graph.inserting_before(node):
            return tuple(add_constant(model, "_part", one.contiguous()) for one in (data.real, data.imag))  # type: ignore[return-value]
    if name == _MADE:
        return tuple(call(_aten.select.int, node.args[0], -1, at) for at in (0, 1))  # type: ignore[return-value]
    if name == _CONJUGATE:
        real, imaginary = parts[node.args[0]]  # type: ignore[index]
        return real, call(_aten.neg.default, imaginary)
    if is_transform(model, node):
        return parts_of_transform(model, call, node)
    if name != _PRODUCT:
        return tuple(_again(call, node, parts, at) for at in (0, 1))  # type: ignore[return-value]
    left, right = (parts.get(one, (one, None)) for one in node.args[:2])  # type: ignore[arg-type, call-overload]
    if left[1] is None or right[1] is None:  # one of them is real
        scale, both = (left[0], right) if left[1] is None else (right[0], left)
        return tuple(call(_aten.mul.Tensor, one, scale) for one in both)  # type: ignore[return-value]
    (a, b), (c, d) = left, right
    real = call(_aten.sub.Tensor, call(_aten.mul.Tensor, a, c), call(_aten.mul.Tensor, b, d))
    return real, call(_aten.add.Tensor, call(_aten.mul.Tensor, a, d), call(_aten.mul.Tensor, b, c))


def _again(call: Insert, node: Node, parts: dict[Node, _Parts], at: int) -> Node:
    args, kwargs = map_arg((node.args, node.kwargs), lambda one: parts[one][at] if one in parts else one)
    made = call(node.target, *args, **kwargs)
    assert not value_of(made).is_complex()
    return made
