"""Resize and Upsample.

Every mode is a linear map along each dimension, so each has a matrix. If one of torch's own operators computes that map, it
is used, because the NPU supports it; nearest modes become index selections; the others multiply by the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

Array = npt.NDArray[np.float64]

_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _coordinates(mode: str, size: int, out: int, scale: float, roi: tuple[float, float]) -> Array:
    """Return the input coordinate of each output element."""
    at = np.arange(out, dtype=np.float64)
    if mode == "align_corners":
        return at * (size - 1) / (out - 1) if out > 1 else np.zeros(out)
    if mode == "asymmetric":
        return at / scale
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if out == 1:
            return np.full(1, 0.5 * (start + end) * (size - 1))
        return start * (size - 1) + at * (end - start) * (size - 1) / (out - 1)
    if mode == "pytorch_half_pixel" and out == 1:
        return np.full(1, -0.5)
    found = (at + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        found += size / 2 * (1 - out / (scale * size))
    return found


def _nearest(places: Array, how: str, size: int) -> npt.NDArray[np.int64]:
    ways: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    return np.clip(ways[how](places), 0, size - 1).astype(np.int64)


def _triangle(x: Array) -> Array:
    return np.clip(1 - np.abs(x), 0, 1)


def _cubic(a: float) -> Callable[[Array], Array]:
    def weight(x: Array) -> Array:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))

    return weight


def matrix(
    places: Array, size: int, weight: Callable[[Array], Array], support: int, stretch: float, exclude: bool
) -> Array:
    """Return a matrix [outputs, inputs] with the weight of each input element in each output element."""
    made = np.zeros((len(places), size))
    for row, place in enumerate(places):
        reach = support / stretch
        near = np.arange(int(np.floor(place - reach)), int(np.ceil(place + reach)) + 1)
        weights = weight((near - place) * stretch)
        inside = (near >= 0) & (near < size)
        if exclude:
            weights = np.where(inside, weights, 0.0)
        total = weights.sum()
        np.add.at(made[row], np.clip(near, 0, size - 1), weights / (total if total else 1.0))
    return made


class _Axis:
    """One resized dimension."""

    def __init__(self, axis: int, size: int, out: int, scale: float, roi: tuple[float, float]) -> None:
        self.axis, self.size, self.out, self.scale, self.roi = axis, size, out, scale, roi


def _axes(call: Call, x: torch.Tensor, mode: str) -> list[_Axis]:
    """Return the resized dimensions and their sizes, from scales or sizes, given for all dimensions or some."""
    rank = x.dim()
    if call.version < 10 or call.node.op_type == "Upsample":
        scales = call.constant_input(1).reshape(-1).tolist() if call.has(1) else list(call.attribute("scales") or ())
        sizes, given, roi = None, list(range(rank)), None
    elif call.version == 10:
        scales, sizes, given, roi = call.constant_input(1).reshape(-1).tolist(), None, list(range(rank)), None
    else:
        given = [int(one) % rank for one in call.attribute("axes") or range(rank)]
        roi = call.constant_input(1).reshape(-1).tolist() if call.has(1) and mode == "tf_crop_and_resize" else None
        scales = call.constant_input(2).reshape(-1).tolist() if call.has(2) and call.constant_input(2).size else None
        sizes = call.numbers(3) if call.has(3) and call.constant_input(3).size else None
    if (scales is None) == (sizes is None):
        raise FormatError("it has both or neither of scales and sizes", hint="export the model again")
    numbers = scales if scales is not None else sizes
    assert numbers is not None
    if len(numbers) != len(given) or any(not number > 0 for number in numbers):
        raise FormatError(f"it resizes {list(x.shape)} by {list(numbers)}", hint="export the model again")
    have = [int(x.shape[axis]) for axis in given]
    if sizes is not None:
        policy = call.text("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
        factors = [out / size for out, size in zip(sizes, have, strict=True)]
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors, sizes = [factor] * len(given), [int(np.floor(factor * size + 0.5)) for size in have]
        scales = factors
    else:
        assert scales is not None
        sizes = [int(np.floor(size * scale)) for size, scale in zip(have, scales, strict=True)]
    found = []
    for at, axis in enumerate(given):
        part = (roi[at], roi[at + len(given)]) if roi else (0.0, 1.0)
        if sizes[at] != have[at] or scales[at] != 1 or part != (0.0, 1.0):
            found.append(_Axis(axis, have[at], sizes[at], float(scales[at]), part))
    return found


@converts("Resize", "Upsample", grows=True)
def resize(call: Call) -> torch.Tensor:
    """Resize by any of ONNX's modes."""
    x = call.tensor(0)
    old = call.version < 11 or call.node.op_type == "Upsample"
    kind = call.text("mode", "nearest", ("nearest", "linear", "bilinear", "cubic"))
    mode = call.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", _COORDINATES)
    axes = _axes(call, x, mode)
    if not axes:
        return x
    if kind == "nearest":
        how = call.text("nearest_mode", "floor" if old else "round_prefer_floor", _ROUNDINGS)
        return _by_index(call, x, axes, mode, how)
    return _by_weights(call, x, axes, mode, kind)


def _by_index(call: Call, x: torch.Tensor, axes: list[_Axis], mode: str, how: str) -> torch.Tensor:
    raw = [_coordinates(mode, one.size, one.out, one.scale, one.roi) for one in axes]
    tables = [_nearest(places, how, one.size) for one, places in zip(axes, raw, strict=True)]
    outside = mode == "tf_crop_and_resize"
    if not outside and x.dim() == 4 and x.is_floating_point() and all(one.axis in (2, 3) for one in axes):
        # torch's nearest: floor(i · in / out)
        theirs = [np.arange(one.out) * one.size // one.out for one in axes]
        if all(np.array_equal(ours, torchs) for ours, torchs in zip(tables, theirs, strict=True)):
            return functional.interpolate(x, size=_sizes(x, axes)[2:], mode="nearest")
    for one, table in zip(axes, tables, strict=True):
        x = torch.index_select(x, one.axis, call.constant(table))
    return _extrapolate(call, x, axes, raw) if outside else x


def _sizes(x: torch.Tensor, axes: list[_Axis]) -> list[int]:
    sizes = [int(size) for size in x.shape]
    for one in axes:
        sizes[one.axis] = one.out
    return sizes


def _by_weights(call: Call, x: torch.Tensor, axes: list[_Axis], mode: str, kind: str) -> torch.Tensor:
    antialias, exclude = bool(call.attribute("antialias", 0)), bool(call.attribute("exclude_outside", 0))
    linear = kind in ("linear", "bilinear")
    weight = _triangle if linear else _cubic(float(call.attribute("cubic_coeff_a", -0.75)))
    raw = [_coordinates(mode, one.size, one.out, one.scale, one.roi) for one in axes]
    tables = [
        matrix(places, one.size, weight, 1 if linear else 2, min(one.scale, 1.0) if antialias else 1.0, exclude)
        for one, places in zip(axes, raw, strict=True)
    ]
    crop = mode == "tf_crop_and_resize"
    if linear and not crop and x.dim() == 4 and all(one.axis in (2, 3) for one in axes):
        for corners in (False, True):
            theirs = [_torch_linear(one, corners) for one in axes]
            if all(np.abs(a - b).max() < 1e-6 for a, b in zip(tables, theirs, strict=True)):
                return functional.interpolate(x, size=_sizes(x, axes)[2:], mode="bilinear", align_corners=corners)
    kept = x.dtype
    x = x if x.is_floating_point() else x.float()
    dtype = x.dtype
    for one, table in zip(axes, tables, strict=True):
        last = x.dim() - 1
        constant = call.constant(lambda table=table: torch.from_numpy(table).to(dtype))
        if one.axis == last:
            x = functional.linear(x, constant)
        else:
            x = functional.linear(x.transpose(one.axis, last), constant).transpose(one.axis, last)
    x = x if kept.is_floating_point else torch.round(x).to(kept)
    return _extrapolate(call, x, axes, raw) if crop else x


def _torch_linear(one: _Axis, corners: bool) -> Array:
    places: Array
    if corners:
        places = np.arange(one.out, dtype=np.float64) * ((one.size - 1) / (one.out - 1) if one.out > 1 else 0.0)
    else:
        places = np.maximum((np.arange(one.out) + 0.5) * one.size / one.out - 0.5, 0).astype(np.float64)
    return matrix(places, one.size, _triangle, 1, 1.0, False)


def _extrapolate(call: Call, x: torch.Tensor, axes: list[_Axis], raw: list[Array]) -> torch.Tensor:
    """Fill positions outside the input with a fixed value."""
    value = float(call.attribute("extrapolation_value", 0.0))
    for one, places in zip(axes, raw, strict=True):
        outside = (places < 0) | (places > one.size - 1)
        if outside.any():
            shape = [1] * x.dim()
            shape[one.axis] = -1
            mask = call.constant(outside.reshape(shape))
            x = torch.where(mask, torch.full((), value, dtype=x.dtype), x)
    return x


@converts("GridSample")
def grid_sample(call: Call) -> torch.Tensor:
    """Sample the image at computed coordinates."""
    modes = {
        "bilinear": "bilinear",
        "linear": "bilinear",
        "nearest": "nearest",
        "bicubic": "bicubic",
        "cubic": "bicubic",
    }
    mode = modes[call.text("mode", "linear", tuple(modes))]
    padding = call.text("padding_mode", "zeros", ("zeros", "border", "reflection"))
    corners = bool(call.attribute("align_corners", 0))
    return functional.grid_sample(call.tensor(0), call.tensor(1), mode, padding, corners)


@converts("AffineGrid")
def affine_grid(call: Call) -> torch.Tensor:
    """Return the coordinates that an affine map samples."""
    corners = bool(call.attribute("align_corners", 0))
    return functional.affine_grid(call.tensor(0), call.numbers(1), align_corners=corners)
