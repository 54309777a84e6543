"""RecognizeActivation: an activation function written out is that function.

Before:  y = x * 0.5 * (1 + tanh(0.7979 * (x + 0.044715 * x * x * x)))       y = x * clamp(x + 3, 0, 6) / 6
After:   y = gelu(x, approximate="tanh")                                     y = hardswish(x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes._attributes import tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.recognize._stretch import Stretch, rewrite

_HEARTS = frozenset(
    f"aten.{name}" for name in (
        "tanh.default", "erf.default", "sigmoid.default", "exp.default", "clamp.default", "hardtanh.default",
        "relu6.default", "softplus.default", "hardsigmoid.default",
    )
)  # fmt: skip
_ALLOWED = _HEARTS | frozenset(
    f"aten.{name}" for name in (
        "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "mul.Tensor", "mul.Scalar", "div.Tensor",
        "div.Scalar", "pow.Tensor_Scalar", "square.default", "neg.default", "reciprocal.default", "log.default",
        "log1p.default", "relu.default", "detach.default", "alias.default",
    )
)  # fmt: skip
_aten = torch.ops.aten
# An operator and its keyword arguments; tested in this order, and no two of them agree on the samples.
FUNCTIONS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (_aten.gelu.default, {}), (_aten.gelu.default, {"approximate": "tanh"}), (_aten.silu.default, {}),
    (_aten.hardswish.default, {}), (_aten.hardsigmoid.default, {}), (_aten.mish.default, {}), (_aten.softplus.default, {}),
    (_aten.sigmoid.default, {}), (_aten.tanh.default, {}),
)  # fmt: skip
# Where the functions differ most, densely, and far out, where each has become its asymptote.
_SAMPLES = torch.cat([torch.linspace(-12, 12, 4801), torch.tensor([-80.0, -30.0, 30.0, 80.0])]).double()
_CLOSE = 1e-5  # relative to 1 or the value: constants are often written with five or six digits


def recognize_activation(model: GraphModule) -> int:
    """Rewrite in place; returns how many were found."""
    return rewrite(model, _HEARTS, lambda node: _elementwise(model, node), _activation)


def _activation(stretch: Stretch) -> Node | None:
    found = None if len(stretch.nodes) == 1 else _function(stretch)
    if found is None:
        return None
    operator, options = found
    return Insert(stretch.model, stretch.end)(operator, stretch.start, **options)


def _elementwise(model: GraphModule, node: Node) -> bool:
    """Whether it works on each element alone: constants beside it are single numbers."""
    if operator_name(node) not in _ALLOWED:
        return False
    stored = [data for one in node.all_input_nodes if (data := tensor_of(model, one)) is not None]
    return all(data.numel() == 1 for data in stored)


def _function(stretch: Stretch) -> tuple[Callable[..., torch.Tensor], dict[str, Any]] | None:
    made = stretch(_SAMPLES)
    if made is None or made.numel() != _SAMPLES.numel():
        return None
    made = made.reshape(-1)
    room = _CLOSE * made.abs().clamp(min=1)
    for operator, options in FUNCTIONS:
        if bool(((operator(_SAMPLES, **options) - made).abs() <= room).all()):
            return operator, options
    return None
