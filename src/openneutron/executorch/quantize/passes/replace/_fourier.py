"""Fourier transforms of real values, as real and imaginary parts: products with sines and cosines.

torch.stft becomes a convolution whose filters are the waves times the window, with the hop as its stride; torch.fft.rfft a
linear layer.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, shape_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert

STFT, RFFT = "aten.stft.default", "aten.fft_rfft.default"
_MOST_POINTS = 4096  # whose waves are 33 MB as INT8; a longer transform is none for an NPU
_aten = torch.ops.aten


def is_transform(model: GraphModule, node: Node) -> bool:
    """Return whether a node is a transform that can be written as products: of constant window and a size that fits."""
    given: Any = arguments(node) if operator_name(node) in (STFT, RFFT) else None
    if given is None:
        return False
    if operator_name(node) == RFFT:
        return _points(node) <= _MOST_POINTS and given["norm"] in (None, "backward", "ortho", "forward")
    window = given["window"]
    return (
        given["n_fft"] <= _MOST_POINTS and given["onesided"] is not False
        and not given.get("align_to_window") and (window is None or tensor_of(model, window) is not None)
    )  # fmt: skip


def parts_of_transform(model: GraphModule, call: Insert, node: Node) -> tuple[Node, Node]:
    """Insert the transform; returns its real and its imaginary part."""
    return _stft(model, call, node) if operator_name(node) == STFT else _rfft(model, call, node)


def _stft(model: GraphModule, call: Insert, node: Node) -> tuple[Node, Node]:
    given: Any = arguments(node)
    points = given["n_fft"]
    hop, length = given["hop_length"] or points // 4, given["win_length"] or points
    window = torch.ones(length) if given["window"] is None else tensor_of(model, given["window"])
    assert window is not None
    before = (points - length) // 2
    window = torch.nn.functional.pad(window.double(), (before, points - length - before))
    waves = _waves(points, points) * window * (points**-0.5 if given["normalized"] else 1.0)
    weight = _constant(model, call, waves.unsqueeze(1))
    x, rank = given["self"], len(shape_of(given["self"]))
    made = call(_aten.conv1d.default, call(_aten.unsqueeze.default, x, rank - 1), weight, None, [hop])
    bins = points // 2 + 1
    first, second = (call(_aten.slice.Tensor, made, rank - 1, at * bins, (at + 1) * bins) for at in (0, 1))
    return first, second


def _rfft(model: GraphModule, call: Insert, node: Node) -> tuple[Node, Node]:
    given: Any = arguments(node)
    points, x = _points(node), given["self"]
    shape = shape_of(x)
    dim = given["dim"] % len(shape)
    factor = {"ortho": points**-0.5, "forward": 1.0 / points}.get(given["norm"], 1.0)
    seen = min(points, shape[dim])
    if seen < shape[dim]:
        x = call(_aten.slice.Tensor, x, dim, 0, seen)
    waves = (_waves(points, seen) * factor).chunk(2)
    x = x if dim == len(shape) - 1 else call(_aten.transpose.int, x, dim, -1)
    made = [call(_aten.linear.default, x, _constant(model, call, one)) for one in waves]
    first, second = (one if dim == len(shape) - 1 else call(_aten.transpose.int, one, dim, -1) for one in made)
    return first, second


def _points(node: Node) -> int:
    given: Any = arguments(node)
    return int(given["n"] or shape_of(given["self"])[given["dim"]])


def _waves(points: int, seen: int) -> torch.Tensor:
    """Return cosines and negative sines of all frequencies: [2 * frequencies, samples]."""
    turns = torch.arange(points // 2 + 1).unsqueeze(1) * torch.arange(seen) % points
    angle = turns.double() * (2 * torch.pi / points)
    return torch.cat([angle.cos(), -angle.sin()])


def _constant(model: GraphModule, call: Insert, data: torch.Tensor) -> Node:
    with model.graph.inserting_before(call.node):
        return add_constant(model, "_waves", data.float())
