"""Slices of volumes [N, C, D, H, W] as batches of images [N · D, C, H, W], and back."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.fx import Node

from openneutron.executorch.fx import value_of
from openneutron.executorch.quantize.passes._insert import Insert

_aten: Any = torch.ops.aten
_DEPTH_FIRST = [0, 2, 1, 3, 4]  # [N, D, C, H, W], and back again


class Run(NamedTuple):
    """Windows along the depth that read equally many slices: the first slice, slices of each window, number of windows."""

    begin: int
    taps: int
    windows: int


def fold_depth(call: Insert, x: Node, begin: int = 0, end: int | None = None) -> Node:
    """Return the slices from `begin` to `end` as a batch of images."""
    _, channels, depth, height, width = value_of(x).shape
    part = call(_aten.permute.default, x, _DEPTH_FIRST)
    stop = depth if end is None else end
    if (begin, stop) != (0, depth):
        part = call(_aten.slice.Tensor, part, 1, begin, stop)
    return call(_aten.reshape.default, part, [-1, channels, height, width])


def unfold_depth(call: Insert, images: Node, slices: int) -> Node:
    """Return a batch of images as a batch of volumes of so many slices; training leaves the size of the batch open."""
    volumes = call(_aten.reshape.default, images, [-1, slices, *value_of(images).shape[1:]])
    return call(_aten.permute.default, volumes, _DEPTH_FIRST)


def pad_depth(call: Insert, x: Node, before: int, behind: int) -> Node:
    """Add slices of zeros."""
    if not before and not behind:
        return x
    return call(_aten.constant_pad_nd.default, x, [0, 0, 0, 0, before, behind], 0.0)


def cut_depth(call: Insert, x: Node, begin: int, end: int) -> Node:
    """Return the slices from `begin` to `end` as a volume; all of them need no operator."""
    return x if (begin, end) == (0, value_of(x).shape[2]) else call(_aten.slice.Tensor, x, 2, begin, end)


def take_slices(call: Insert, x: Node, taps: int, stride: int, dilation: int) -> list[Node]:
    """Return for each tap of a window the slices that the windows read there, as batches of images."""
    _, channels, depth, height, width = value_of(x).shape
    count = (depth - dilation * (taps - 1) - 1) // stride + 1
    first, found = call(_aten.permute.default, x, _DEPTH_FIRST), []
    for tap in range(taps):
        begin = tap * dilation
        part = first
        if count != depth:
            part = call(_aten.slice.Tensor, first, 1, begin, begin + (count - 1) * stride + 1, stride)
        found.append(call(_aten.reshape.default, part, [-1, channels, height, width]))
    return found


def average_windows(slices: int, count: int, kernel: int, stride: int, padding: int) -> list[Run]:
    """Return the windows of an average in runs; slices outside the volume do not count."""
    spans = [(max(0, at), min(slices, at + kernel)) for at in range(-padding, count * stride - padding, stride)]
    runs: list[Run] = []
    for begin, end in spans:
        last = runs[-1] if runs else None
        if last is not None and last.taps == end - begin and begin == last.begin + last.windows * stride:
            runs[-1] = last._replace(windows=last.windows + 1)
        else:
            runs.append(Run(begin, end - begin, 1))
    return runs
