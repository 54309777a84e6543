"""RecognizeLayerNorm: a value less its mean, divided by its deviation, is a layer normalisation.

Before:  m = mean(x, -1); v = mean(x * x, -1) - m * m; y = (x - m) * (rsqrt(v + eps) * g) + b
After:   d = x - mean(x, -1); y = d * rsqrt(sum(d * d, -1) / n + eps) * g + b, as DecomposeLayerNorm writes it

The difference of two large sums is what quantization takes worst; this form has none. It may be any one dimension. Factor
and offset of each channel are those that explain the samples, wherever they were multiplied and added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, shape_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose.decompose_layer_norm import normalized
from openneutron.executorch.quantize.passes.recognize._stretch import Stretch, rewrite
from openneutron.executorch.quantize.passes.recognize.recognize_softmax import MOST_ELEMENTS, VIEWS

_HEARTS = frozenset({"aten.rsqrt.default", "aten.sqrt.default"})
_ALLOWED = _HEARTS | VIEWS | frozenset(
    f"aten.{name}" for name in (
        "add.Tensor", "add.Scalar", "sub.Tensor", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar", "neg.default",
        "pow.Tensor_Scalar", "square.default", "reciprocal.default", "mean.dim", "sum.dim_IntList", "maximum.default",
        "clamp.default", "clamp_min.default", "relu.default", "var.correction", "var.dim",
    )
)  # fmt: skip
_CLOSE = 1e-6  # of the largest value, in double precision
_LARGEST_EPSILON = 1e-2
_SAMPLES = 4


def recognize_layer_norm(model: GraphModule) -> int:
    """Rewrite in place; returns how many were found."""
    return rewrite(model, _HEARTS, lambda node: operator_name(node) in _ALLOWED, _layer_norm)


def _layer_norm(stretch: Stretch) -> Node | None:
    found = _norm(stretch)
    if found is None:
        return None
    shape = [1] * len(shape_of(stretch.start))
    shape[found.dim] = -1
    with stretch.model.graph.inserting_before(stretch.end):
        stored = [
            None
            if bool(((one - neutral).abs() <= _CLOSE).all())
            else add_constant(stretch.model, "_norm", one.reshape(shape))
            for one, neutral in ((found.factor.float(), 1.0), (found.offset.float(), 0.0))
        ]
    call = Insert(stretch.model, stretch.end)
    return normalized(call, stretch.start, [found.dim], found.epsilon, *stored)


@dataclass(frozen=True)
class _Norm:
    """The dimension that is normalised, and what happens to each of its channels afterwards."""

    dim: int
    epsilon: float
    factor: torch.Tensor
    offset: torch.Tensor


def _norm(stretch: Stretch) -> _Norm | None:
    """The normalisation over one dimension that it is."""
    shape = shape_of(stretch.start)
    if shape != shape_of(stretch.end) or torch.Size(shape).numel() > MOST_ELEMENTS:
        return None
    random = torch.Generator().manual_seed(0)
    # Of different spread, so that epsilon shows.
    samples = [10.0**-at * torch.randn(shape, dtype=torch.float64, generator=random) + 0.1 for at in range(_SAMPLES)]
    made = [stretch(x) for x in samples]
    if any(y is None or y.shape != x.shape for x, y in zip(samples, made, strict=True)):
        return None
    epsilons = dict.fromkeys(one for one in stretch.constants() if 0 < one <= _LARGEST_EPSILON)
    for dim in (at for at in range(-1, -len(shape) - 1, -1) if shape[at] > 1):
        y = _rows([one for one in made if one is not None], dim)
        for epsilon in epsilons:
            z = torch.layer_norm(_rows(samples, dim), [shape[dim]], eps=epsilon)
            around = z - z.mean(0)
            factor = (around * y).sum(0) / (around * around).sum(0)
            offset = (y - factor * z).mean(0)
            if bool((z * factor + offset - y).abs().max() <= _CLOSE * y.abs().max()):
                return _Norm(dim, epsilon, factor, offset)
    return None


def _rows(tensors: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """All of them as rows along a dimension."""
    return torch.cat([one.movedim(dim, -1).reshape(-1, one.shape[dim]) for one in tensors])
