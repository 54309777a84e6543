"""Definitions of operators by others that have quantized forms.

They replace PyTorch's own definitions that test for infinities or NaN, make integers at run time, or use operators outside
the core set. Each takes the operator's arguments by its schema. Values seen in calibration are finite, so none tests for
others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from openneutron.errors import UnsupportedError


def _logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    largest = x.amax(dim, True)
    result = (x - largest).exp().sum(dim, True).log() + largest
    return result if keepdim else result.squeeze(tuple(dim))


def _logaddexp(x: Tensor, other: Tensor) -> Tensor:
    return torch.maximum(x, other) + torch.log1p(torch.exp(-(x - other).abs()))


def _mean(x: Tensor, *, dtype: Any = None) -> Tensor:
    return x.mean(list(range(x.dim())))


def _lerp(start: Tensor, end: Tensor, weight: Any) -> Tensor:
    return start + weight * (end - start)


def _spread(x: Tensor, dim: list[int] | None, correction: float, keepdim: bool) -> Tensor:
    dims = list(range(x.dim())) if dim is None else [int(one) for one in dim]
    apart = x - x.mean(dims, True)
    count = math.prod(x.shape[one] for one in dims)
    return (apart * apart).sum(dims, keepdim) * (1.0 / (count - correction))


def _var(x: Tensor, dim: list[int] | None = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return _spread(x, dim, 1.0 if unbiased else 0.0, keepdim)


def _var_corrected(
    x: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _spread(x, dim, 1.0 if correction is None else float(correction), keepdim)


def _std(*args: Any, **kwargs: Any) -> Tensor:
    return _var(*args, **kwargs).sqrt()


def _std_corrected(*args: Any, **kwargs: Any) -> Tensor:
    return _var_corrected(*args, **kwargs).sqrt()


def _with_mean(spread: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    def both(
        x: Tensor, dim: list[int] | None = None, *args: Any, keepdim: bool = False, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        dims = list(range(x.dim())) if dim is None else dim
        keep = bool(args[1]) if len(args) > 1 else keepdim
        made = spread(x, dim, *args, **({} if len(args) > 1 else {"keepdim": keepdim}), **kwargs)
        return made, x.mean(dims, keep)

    return both


def _norm(x: Tensor, p: float = 2.0, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    dims = [dim] if isinstance(dim, int) else dim
    return torch.linalg.vector_norm(x, 2.0 if p is None else p, dims, keepdim)


def _hypot(x: Tensor, other: Tensor) -> Tensor:
    return (x * x + other * other).sqrt()


def _cross(x: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    dim = list(x.shape).index(3) if dim is None else dim
    a, b = x.unbind(dim), other.unbind(dim)
    return torch.stack([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)], dim)


def _linalg_cross(x: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    return _cross(x, other, dim)


def _exp2(x: Tensor) -> Tensor:
    return torch.pow(2.0, x)


def _aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    dims = list(range(x.dim())) if dim is None else [dim]
    return x.amin(dims, keepdim), x.amax(dims, keepdim)


def _addcdiv(x: Tensor, first: Tensor, second: Tensor, *, value: float = 1) -> Tensor:
    part = first / second
    return x + (part if value == 1 else part * value)


def _rrelu(x: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *_: Any) -> Tensor:
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)


def _bilinear(x: Tensor, other: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    outputs, first, second = weight.shape
    turned = torch.nn.functional.linear(x, weight.permute(0, 2, 1).reshape(outputs * second, first))
    result = (turned.reshape(*x.shape[:-1], outputs, second) * other.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def _cdist(x: Tensor, other: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    return torch.linalg.vector_norm(x.unsqueeze(-2) - other.unsqueeze(-3), p, -1)


def _triangle(keep: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def mask_diagonal(x: Tensor, diagonal: int = 0) -> Tensor:
        return x * keep(torch.ones(x.shape[-2:], dtype=torch.bool), diagonal).to(torch.float32)

    return mask_diagonal


def _unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    dim = dimension % x.dim()
    count = (x.shape[dim] - size) // step + 1
    if size == step:
        rows = x.narrow(dim, 0, count * size)
    else:
        starts, inside = torch.arange(count).unsqueeze(1) * step, torch.arange(size)
        rows = x.index_select(dim, (starts + inside).reshape(-1))
    parted = rows.reshape(*x.shape[:dim], count, size, *x.shape[dim + 1 :])
    order = [*range(dim + 1), *range(dim + 2, x.dim() + 1), dim + 1]
    return parted.permute(order)


def _im2col(x: Tensor, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Tensor:
    image = x if x.dim() == 4 else x.unsqueeze(0)
    if any(padding):
        image = torch.nn.functional.pad(image, (padding[1], padding[1], padding[0], padding[0]))
    batch, channels = image.shape[:2]
    counts = []
    for axis in (0, 1):
        count = (image.shape[2 + axis] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
        inside = torch.arange(kernel[axis]).unsqueeze(1) * dilation[axis]
        image = image.index_select(2 + axis, (inside + torch.arange(count) * stride[axis]).reshape(-1))
        counts.append(count)
    parted = image.reshape(batch, channels, kernel[0], counts[0], kernel[1], counts[1]).permute(0, 1, 2, 4, 3, 5)
    columns = parted.reshape(batch, channels * kernel[0] * kernel[1], counts[0] * counts[1])
    return columns if x.dim() == 4 else columns.squeeze(0)


def _col2im(
    x: Tensor, output_size: list[int], kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Tensor:
    """Return the sum of patches at their places: a transposed convolution whose weights are ones."""
    columns = x if x.dim() == 3 else x.unsqueeze(0)
    window, sizes, beyond = math.prod(kernel), [], []
    for axis, size in enumerate(output_size):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        sizes.append((size + 2 * padding[axis] - reach) // stride[axis] + 1)
        beyond.append(size + 2 * padding[axis] - reach - (sizes[-1] - 1) * stride[axis])
    channels = columns.shape[1] // window
    if kernel == stride and dilation == [1, 1] and not any((*padding, *beyond)):
        parts = columns.reshape(-1, channels, *kernel, *sizes).permute(0, 1, 4, 2, 5, 3)
        image = parts.reshape(-1, channels, *output_size)
    else:
        patches = columns.reshape(-1, channels * window, *sizes)
        places = torch.eye(window).reshape(window, 1, *kernel).repeat(channels, 1, 1, 1)
        image = torch.nn.functional.conv_transpose2d(patches, places, None, stride, padding, beyond, channels, dilation)
    return image if x.dim() == 3 else image.squeeze(0)


def _clamp(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    above = x if min is None else torch.maximum(x, min)
    return above if max is None else torch.minimum(above, max)


def _affine_grid(theta: Tensor, size: list[int], align_corners: bool) -> Tensor:
    axes = [
        torch.linspace(-1, 1, one) * (1.0 if align_corners else (one - 1) / one) if one > 1 else torch.zeros(1)
        for one in size[2:]
    ]
    places = torch.meshgrid(*axes, indexing="ij")[::-1]
    base = torch.stack([*(one.reshape(-1) for one in places), torch.ones(math.prod(size[2:]))], -1)
    each = torch.bmm(base.expand(size[0], *base.shape), theta.transpose(1, 2))
    return each.reshape(size[0], *size[2:], len(axes))


def _copy(x: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return src if src.shape == x.shape else src.expand(x.shape)


def _fill(x: Tensor, value: Tensor) -> Tensor:
    return value.to(x.dtype).expand(x.shape)


def _make_filled(value: float) -> Callable[..., Tensor]:
    return lambda x, **_: torch.full(x.shape, value)


def _full_like(x: Tensor, value: float, **_: Any) -> Tensor:
    return torch.full(x.shape, float(value))


def _nearest_exact(x: Tensor, output_size: list[int] | None, scale_factors: list[float] | None) -> Tensor:
    for axis, size in enumerate(x.shape[2:]):
        factor = None if scale_factors is None else scale_factors[axis]
        out = output_size[axis] if output_size is not None else int(size * (factor or 1.0))
        step = size / out if factor is None else 1.0 / factor
        at = ((torch.arange(out) + 0.5) * step).to(torch.int64)
        x = x.index_select(2 + axis, at.clamp(max=size - 1))
    return x


def _slice_scatter(
    x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    if not all(one is None or isinstance(one, int) for one in (start, end)):
        raise UnsupportedError(
            "rows are written at a position that the model takes out of a tensor as a number (item, tolist or int)",
            hint="index with the tensor itself: cache[:, position] = row, or cache.index_copy_(1, position, row)",
        )
    at = range(x.shape[dim])[slice(start, end, step)]
    if step != 1:
        parts = [src.select(dim, at.index(i)) if i in at else x.select(dim, i) for i in range(x.shape[dim])]
        return torch.stack(parts, dim)
    return _join_around(x, src, dim, at.start, at.stop) if len(at) else x


def _select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    at = index % x.shape[dim]
    return _join_around(x, src.unsqueeze(dim), dim, at, at + 1)


def _join_around(x: Tensor, part: Tensor, dim: int, start: int, end: int) -> Tensor:
    """Join the elements before a part, the part, and the elements behind it."""
    size = x.shape[dim]
    before = [x.narrow(dim, 0, start)] if start else []
    behind = [x.narrow(dim, end, size - end)] if end < size else []
    parts = [*before, part, *behind]
    return torch.cat(parts, dim) if len(parts) > 1 else part


_NAMED: dict[str, Callable[..., Any]] = {
    "addcdiv.default": _addcdiv, "affine_grid_generator.default": _affine_grid, "clamp.Tensor": _clamp,
    "col2im.default": _col2im, "aminmax.default": _aminmax, "bilinear.default": _bilinear,
    "cdist.default": _cdist, "cross.default": _cross, "exp2.default": _exp2,
    "fmax.default": torch.maximum, "fmin.default": torch.minimum, "hypot.default": _hypot, "im2col.default": _im2col,
    "lerp.Scalar": _lerp, "lerp.Tensor": _lerp, "linalg_cross.default": _linalg_cross, "logaddexp.default": _logaddexp,
    "logsumexp.default": _logsumexp, "mean.default": _mean, "norm.ScalarOpt_dim": _norm, "norm.Scalar": _norm,
    "rrelu.default": _rrelu, "std.correction": _std_corrected, "std.dim": _std,
    "std_mean.correction": _with_mean(_std_corrected), "std_mean.dim": _with_mean(_std),
    "tril.default": _triangle(torch.tril), "triu.default": _triangle(torch.triu), "unfold.default": _unfold,
    "var.correction": _var_corrected, "var.dim": _var,
    "var_mean.correction": _with_mean(_var_corrected), "var_mean.dim": _with_mean(_var),
    "_upsample_nearest_exact1d.vec": _nearest_exact, "_upsample_nearest_exact2d.vec": _nearest_exact,
    "_upsample_nearest_exact3d.vec": _nearest_exact,
    "copy.default": _copy,
    "fill.Scalar": _full_like, "fill.Tensor": _fill, "full_like.default": _full_like,
    "ones_like.default": _make_filled(1.0), "zeros_like.default": _make_filled(0.0),
    "select_scatter.default": _select_scatter, "slice_scatter.default": _slice_scatter,
}  # fmt: skip
DEFINITIONS = {f"aten.{name}": definition for name, definition in _NAMED.items()}
