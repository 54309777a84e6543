"""RecognizeLayerNorm: recognises a layer norm in a value minus its mean, divided by its deviation.

Before:  m = mean(x, -1); v = mean(x * x, -1) - m * m; y = (x - m) * (rsqrt(v + eps) * g) + b
After:   d = x - mean(x, -1); y = d * rsqrt(sum(d * d, -1) / n + eps) * g + b, as DecomposeLayerNorm writes it

Quantization loses most in the difference of two large sums; this form has none. Any one dimension can be normalised. Factor
and offset of each channel are fitted to the samples, wherever the model multiplies and adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import operator_name, shape_of
from openneutron.executorch.quantize.passes._attributes import add_constant
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose.decompose_layer_norm import normalize
from openneutron.executorch.quantize.passes.recognize._stretch import Stretch, rewrite
from openneutron.executorch.quantize.passes.recognize.recognize_softmax import MOST_ELEMENTS, VIEWS

_START_OPERATORS = frozenset({"aten.rsqrt.default", "aten.sqrt.default"})
_ALLOWED = _START_OPERATORS | VIEWS | frozenset(
    f"aten.{name}" for name in (
        "add.Tensor", "add.Scalar", "sub.Tensor", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar", "neg.default",
        "pow.Tensor_Scalar", "square.default", "reciprocal.default", "mean.dim", "sum.dim_IntList", "maximum.default",
        "clamp.default", "clamp_min.default", "relu.default", "var.correction", "var.dim",
    )
)  # fmt: skip
_CLOSE = 1e-6  # of the largest value, in double precision
_CLOSE_BEYOND = 1e-4  # factor and offset were fitted on other samples
_LARGE = (
    1.0,
    1e2,
    1e4,
)  # standard deviations of the inputs: large ones show a clamp of them, or of what is divided by them
_LARGEST_EPSILON = 1e-2
_SAMPLES = 4


def recognize_layer_norm(model: GraphModule) -> int:
    """Rewrite in place; returns the number of recognised norms."""
    return rewrite(model, _START_OPERATORS, lambda node: operator_name(node) in _ALLOWED, _layer_norm)


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
    return normalize(call, stretch.start, [found.dim], found.epsilon, *stored)


@dataclass(frozen=True)
class _Norm:
    """The normalised dimension, and the factor and offset of each channel."""

    dim: int
    epsilon: float
    factor: torch.Tensor
    offset: torch.Tensor


def _norm(stretch: Stretch) -> _Norm | None:
    """Return the normalisation over one dimension that a stretch computes, None if it computes none."""
    shape = shape_of(stretch.start)
    if shape != shape_of(stretch.end) or torch.Size(shape).numel() > MOST_ELEMENTS:
        return None
    random = torch.Generator().manual_seed(0)
    # Different spreads show epsilon.
    samples = [10.0**-at * torch.randn(shape, dtype=torch.float64, generator=random) + 0.1 for at in range(_SAMPLES)]
    beyond = [scale * _with_outliers(shape, random) for scale in _LARGE]
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
                found = _Norm(dim, epsilon, factor, offset)
                return found if all(_holds(stretch, found, x) for x in beyond) else None
    return None


def _with_outliers(shape: tuple[int, ...], random: torch.Generator) -> torch.Tensor:
    """Return small values with a few large ones: these give the largest normalised values, where clamps act."""
    x = 1e-3 * torch.randn(shape, dtype=torch.float64, generator=random)
    at = torch.arange(0, x.numel(), max(1, shape[-1]) + 1)
    x.view(-1)[at] = torch.where(at % 2 == 0, 1.0, -1.0).double()
    return x


def _holds(stretch: Stretch, norm: _Norm, x: torch.Tensor) -> bool:
    """Return whether the written form equals the norm for `x` too."""
    y = stretch(x)
    if y is None:
        return False
    z = torch.layer_norm(_rows([x], norm.dim), [x.shape[norm.dim]], eps=norm.epsilon)
    wanted, made = z * norm.factor + norm.offset, _rows([y], norm.dim)
    return bool((wanted - made).abs().max() <= _CLOSE_BEYOND * made.abs().max())


def _rows(tensors: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """Return all tensors as rows along a dimension."""
    return torch.cat([one.movedim(dim, -1).reshape(-1, one.shape[dim]) for one in tensors])
