"""RecognizeSoftmax: replaces exponentials divided by their sum by a softmax.

Before:  e = exp(x - amax(x, -1, keepdim)); y = e / sum(e, -1, keepdim)
After:   y = softmax(x, -1)
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, shape_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes._ranges import seen_range
from openneutron.executorch.quantize.passes.recognize._stretch import Stretch, rewrite

_EXP = frozenset({"aten.exp.default"})
VIEWS = frozenset(
    f"aten.{name}.default" for name in (
        "view", "reshape", "_unsafe_view", "expand", "unsqueeze", "clone", "contiguous", "alias", "detach",
    )
) | frozenset({"aten.squeeze.dim", "aten.squeeze.dims"})  # fmt: skip
_ALLOWED = _EXP | VIEWS | frozenset(
    f"aten.{name}" for name in (
        "sub.Tensor", "add.Tensor", "mul.Tensor", "div.Tensor", "reciprocal.default", "amax.default", "maximum.default",
        "sum.dim_IntList",
    )
)  # fmt: skip
_CLOSE = 1e-7  # in double precision; probabilities are at most 1
_CLOSE_THERE = 1e-4  # at the ends of the observed range: 80 dB of a probability of 1
_MARGIN = 0.5  # fraction of the observed range, added on either side
_SPREADS = (1.0, 30.0)  # of random values: a flat distribution and one with a single large value
MOST_ELEMENTS = 1 << 22


def recognize_softmax(model: GraphModule) -> int:
    """Rewrite in place; returns the number of recognised softmaxes."""
    return rewrite(model, _EXP, lambda node: operator_name(node) in _ALLOWED, _softmax)


def _softmax(stretch: Stretch) -> Node | None:
    dim = _dim(stretch)
    if dim is None:
        return None
    return Insert(stretch.model, stretch.end)(torch.ops.aten.softmax.int, stretch.start, dim)


def _dim(stretch: Stretch) -> int | None:
    """Return the dimension along which it is a softmax."""
    shape = shape_of(stretch.start)
    if shape != shape_of(stretch.end) or not 1 < torch.Size(shape).numel() <= MOST_ELEMENTS:
        return None
    random = torch.Generator().manual_seed(0)
    samples = [spread * torch.randn(shape, dtype=torch.float64, generator=random) for spread in _SPREADS]
    made = [stretch(x) for x in samples]
    for dim in range(-1, -len(shape) - 1, -1):
        if shape[dim] > 1 and all(
            y is not None and y.shape == x.shape and bool(((torch.softmax(x, dim) - y).abs() <= _CLOSE).all())
            for x, y in zip(samples, made, strict=True)
        ):
            return dim if _holds(stretch, dim) else None
    return None


def _holds(stretch: Stretch, dim: int) -> bool:
    """Return whether it is a softmax for rows at either end of the observed range, where an epsilon can matter."""
    seen = seen_range(stretch.model, stretch.start)
    if seen is None:
        return True
    shape, (low, high) = shape_of(stretch.start), seen
    margin = _MARGIN * (high - low)
    random = torch.Generator().manual_seed(0)
    for at in (low - margin, high + margin, (low + high) / 2):
        x = at + torch.randn(shape, dtype=torch.float64, generator=random)
        y = stretch(x)
        if y is None or not bool(((torch.softmax(x, dim) - y).abs() <= _CLOSE_THERE).all()):
            return False
    return True
