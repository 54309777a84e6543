"""RecognizeActivation: replaces a written-out activation function by its operator.

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
from openneutron.executorch.quantize.passes._ranges import seen_range
from openneutron.executorch.quantize.passes.recognize._stretch import Stretch, rewrite

_START_OPERATORS = frozenset(
    f"aten.{name}" for name in (
        "tanh.default", "erf.default", "sigmoid.default", "exp.default", "clamp.default", "hardtanh.default",
        "relu6.default", "softplus.default", "hardsigmoid.default",
    )
)  # fmt: skip
_ALLOWED = _START_OPERATORS | frozenset(
    f"aten.{name}" for name in (
        "add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar", "mul.Tensor", "mul.Scalar", "div.Tensor",
        "div.Scalar", "pow.Tensor_Scalar", "square.default", "neg.default", "reciprocal.default", "log.default",
        "log1p.default", "relu.default", "detach.default", "alias.default",
    )
)  # fmt: skip
_aten = torch.ops.aten
# Operators with keyword arguments, tested in this order; no two of them agree on the samples.
FUNCTIONS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (_aten.gelu.default, {}), (_aten.gelu.default, {"approximate": "tanh"}), (_aten.silu.default, {}),
    (_aten.hardswish.default, {}), (_aten.hardsigmoid.default, {}), (_aten.mish.default, {}), (_aten.softplus.default, {}),
    (_aten.sigmoid.default, {}), (_aten.tanh.default, {}),
)  # fmt: skip
# Dense samples where the functions differ most, and far ones where each has reached its asymptote.
_SAMPLES = torch.cat([torch.linspace(-12, 12, 4801), torch.tensor([-80.0, -30.0, 30.0, 80.0])]).double()
_CLOSE_LIMITS = 1e-9
_LIMITS = frozenset(f"aten.{name}.default" for name in ("clamp", "hardtanh"))
_FAR = 1e3  # activations of healthy networks stay below
_MARGIN = 0.5  # fraction of the observed range, added on either side
_CLOSE = 1e-5  # relative to 1 or the value: constants are often written with five or six digits


def recognize_activation(model: GraphModule) -> int:
    """Rewrite in place; returns the number of recognised functions."""
    return rewrite(model, _START_OPERATORS, lambda node: _elementwise(model, node), _activation)


def _activation(stretch: Stretch) -> Node | None:
    found = None if len(stretch.nodes) == 1 else _function(stretch)
    if found is None:
        return None
    operator, options = found
    return Insert(stretch.model, stretch.end)(operator, stretch.start, **options)


def _elementwise(model: GraphModule, node: Node) -> bool:
    """Return whether it acts on each element alone, with constants of a single number."""
    if operator_name(node) not in _ALLOWED:
        return False
    stored = [data for one in node.all_input_nodes if (data := tensor_of(model, one)) is not None]
    return all(data.numel() == 1 for data in stored)


def _function(stretch: Stretch) -> tuple[Callable[..., torch.Tensor], dict[str, Any]] | None:
    made = stretch(_SAMPLES)
    if made is None or made.numel() != _SAMPLES.numel():
        return None
    made = made.reshape(-1)
    tolerance = _closeness(stretch) * made.abs().clamp(min=1)
    for operator, options in FUNCTIONS:
        if bool(((operator(_SAMPLES, **options) - made).abs() <= tolerance).all()):
            return (operator, options) if _holds(stretch, operator, options) else None
    return None


def _closeness(stretch: Stretch) -> float:
    """Return the allowed error: limits must be exact, and a result near 1 must stay there to keep later values finite."""
    return _CLOSE_LIMITS if any(operator_name(node) in _LIMITS for node in stretch.nodes) else _CLOSE


def _holds(stretch: Stretch, operator: Callable[..., torch.Tensor], options: dict[str, Any]) -> bool:
    """Return whether the function is equal over the observed range and some way beyond, where a clamp may act.

    Without samples the range reaches far out on both sides, as far as the written form has finite values.
    """
    seen = seen_range(stretch.model, stretch.start)
    low, high = seen if seen is not None else (-_FAR, _FAR)
    margin = _MARGIN * (high - low)
    x = torch.linspace(low - margin, high + margin, _SAMPLES.numel()).double()
    made = stretch(x)
    if made is None or made.numel() != x.numel():
        return False
    made, wanted = made.reshape(-1), operator(x, **options)
    finite = torch.isfinite(made)
    return bool(((wanted - made).abs()[finite] <= (_closeness(stretch) * made.abs().clamp(min=1))[finite]).all())
