"""Padding in all of ONNX's modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from openneutron.errors import FormatError
from openneutron.onnx.ops import converts

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_MODES = {"edge": "replicate", "reflect": "reflect"}


@converts("Pad", grows=True)
def pad(call: Call) -> torch.Tensor:
    """Pad with a constant or with the image's own values; negative padding crops."""
    x = call.tensor(0)
    mode = call.text("mode", "constant", ("constant", "edge", "reflect", "wrap"))
    pads, value = _parameters(call, x)
    begin, end = pads[: x.dim()], pads[x.dim() :]
    for axis in range(x.dim()):
        first, last = max(-begin[axis], 0), max(-end[axis], 0)
        if first or last:
            x = x.narrow(axis, first, x.shape[axis] - first - last)
    begin, end = [max(one, 0) for one in begin], [max(one, 0) for one in end]
    if not any((*begin, *end)):
        return x
    if mode == "constant":
        flat = [size for axis in reversed(range(x.dim())) for size in (begin[axis], end[axis])]
        while len(flat) > 2 and flat[-2:] == [0, 0]:
            flat = flat[:-2]
        return functional.pad(x, flat, value=call.as_real(value))
    if mode in _MODES and _torch_takes(x, begin, end, mode):
        flat = [size for axis in (3, 2) for size in (begin[axis], end[axis])]
        return functional.pad(x, flat, mode=_MODES[mode])
    for axis in range(x.dim()):
        if begin[axis] or end[axis]:
            call.room_for(x.shape[axis] + begin[axis] + end[axis])
            places = _places(x.shape[axis], begin[axis], end[axis], mode)
            x = torch.index_select(x, axis, call.constant(places))
    return x


def _parameters(call: Call, x: torch.Tensor) -> tuple[list[int], float | int]:
    """Return the padding of every dimension, all starts first, and the value."""
    if call.version < 11:
        pads = [int(one) for one in call.attribute("pads") or ()]
        value: float | int = float(call.attribute("value", 0.0))
    else:
        pads, value = call.numbers(1), 0
        if call.has(2):
            value = call.constant_input(2).reshape(-1)[0].item() if call.constant_input(2).size else 0
    if call.has(3) and call.version >= 18:
        axes = [axis % x.dim() for axis in call.numbers(3)]
        if len(pads) != 2 * len(axes):
            raise FormatError(f"its pads are {pads}, for axes {axes}", hint="export the model again")
        full = [0] * 2 * x.dim()
        for at, axis in enumerate(axes):
            full[axis], full[axis + x.dim()] = pads[at], pads[at + len(axes)]
        pads = full
    if len(pads) != 2 * x.dim():
        raise FormatError(f"its pads are {pads}, for {x.dim()} dimensions", hint="export the model again")
    return pads, value


def _torch_takes(x: torch.Tensor, begin: list[int], end: list[int], mode: str) -> bool:
    if x.dim() != 4 or not x.is_floating_point() or any((*begin[:2], *end[:2])):
        return False
    return mode == "edge" or all(max(begin[axis], end[axis]) < x.shape[axis] for axis in (2, 3))


def _places(size: int, begin: int, end: int, mode: str) -> np.ndarray:
    """Return the source element of each position of a padded dimension."""
    places = np.arange(-begin, size + end)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    if size == 1:
        return np.zeros_like(places)
    period = 2 * (size - 1)
    folded = places % period
    return np.where(folded < size, folded, period - folded)
