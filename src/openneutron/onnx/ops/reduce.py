"""Reductions; their axes, first an attribute, became an input at opset 13 for sums and at 18 for the others."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._types import to

if TYPE_CHECKING:
    from openneutron.onnx.call import Call


def _logsumexp(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    return to(torch.logsumexp(x if x.is_floating_point() else x.double(), axes, keep), x.dtype)


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = torch.prod(x, axis, keepdim=keep, dtype=x.dtype)
    return x


def _mean(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    if x.is_floating_point():
        return x.mean(axes, keep)
    count = prod(x.shape[axis] for axis in axes)
    return torch.div(x.sum(axes, keep), count, rounding_mode="trunc").to(x.dtype)


def _extreme(name: str) -> Callable[..., torch.Tensor]:
    def function(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        if not prod(x.shape):
            shape = [1 if at in axes else size for at, size in enumerate(x.shape)]
            empty = torch.full(shape, float("-inf" if name == "amax" else "inf"), dtype=torch.float64)
            kept = empty if keep else empty.reshape([size for at, size in enumerate(shape) if at not in axes])
            return kept.to(x.dtype)
        return getattr(torch, name)(x, axes, keep)

    return function


def _sum(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    return x.sum(axes, keep) if x.is_floating_point() else x.sum(axes, keep, dtype=x.dtype)


def _l2(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    wide = x if x.is_floating_point() else x.double()
    return to(torch.sqrt((wide * wide).sum(axes, keep)), x.dtype)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceMax": _extreme("amax"),
    "ReduceMin": _extreme("amin"),
    "ReduceMean": _mean,
    "ReduceSum": _sum,
    "ReduceProd": _product,
    "ReduceL1": lambda x, axes, keep: _sum(x.abs(), axes, keep),
    "ReduceL2": _l2,
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: torch.log(_sum(x, axes, keep)),
    "ReduceLogSumExp": _logsumexp,
}


def _reduction(name: str, function: Callable[..., Any]) -> Callable[[Call], torch.Tensor]:
    moved = 13 if name == "ReduceSum" else 18

    def convert(call: Call) -> torch.Tensor:
        x, keep = call.tensor(0), bool(call.attribute("keepdims", 1))
        axes = call.axes(1, moved=moved)
        if not axes:
            if call.attribute("noop_with_empty_axes", 0):
                return function(x.unsqueeze(0), [0], False)
            axes = list(range(x.dim()))
        axes = [axis % max(x.dim(), 1) for axis in axes]
        if not x.dim():
            return function(x.unsqueeze(0), [0], False)
        return function(x, axes, keep)

    return convert


for _name, _function in _REDUCTIONS.items():
    converts(_name)(_reduction(_name, _function))
