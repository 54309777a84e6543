"""DecomposeVolumes: turns convolution, pooling and resizing of volumes [N, C, D, H, W] into those of images.

Every slice of the result is one image: the depth becomes part of the batch. A convolution still sums exactly and rounds once:

```text
y = conv3d(x, w), 3 slices deep         the slices d, d + 1, d + 2 that slice d of y reads become channels:
                                        y[d] = conv2d(cat([x[d], x[d + 1], x[d + 2]]), w as [out, 3 · in, kh, kw])
groups                                  the slices become rows, w as [out, in, 3 · kh, kw], with 3 times the stride
kernel of (3, 1, 1)                     conv2d of x as an image [N, C, D, H · W]: nothing is copied
conv_transpose3d(x, w), stride 2        the even and the odd slices are a transposed convolution each, of those they read
max_pool3d                              max_pool2d of height and width, then of the depth: maxima of maxima
avg_pool3d                              avg_pool2d over the slices of a window as rows
upsample_nearest3d, …_trilinear3d       the depth, then height and width
```

The slices of a window are copied next to each other: `kd` times the input in memory. What follows the layer and works on each
value alone, such as a ReLU, moves in front of the views, where it is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import Insert
from openneutron.executorch.quantize.passes.decompose._slices import (
    average_windows,
    cut_depth,
    fold_depth,
    pad_depth,
    take_slices,
    unfold_depth,
)

_aten: Any = torch.ops.aten
_VOLUME = 5  # dimensions of a batch of volumes
_NO_TAP = -1  # for slices of a transposed convolution that nothing reaches: they hold the bias
_NORM = "aten.batch_norm.default"
# Activations of one value: the first argument is the only tensor that is computed.
_ACTIVATIONS = frozenset(
    f"aten.{name}{suffix}.default"
    for name in ("clamp", "clamp_min", "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "relu",
                 "relu6", "sigmoid", "silu", "tanh")
    for suffix in ("", "_")
)  # fmt: skip


class _Parts(NamedTuple):
    """Images that a volume is made of, and how: each of the images has all of its channels."""

    images: list[Node]
    join: Callable[[list[Node]], Node]


_Rule = Callable[[Insert, dict[str, Any], Node], _Parts | None]


def decompose_volumes(model: GraphModule) -> int:
    """Rewrite the graph in place; returns the number of rewritten nodes."""
    count = 0
    for node in list(model.graph.nodes):
        rule = _RULES.get(operator_name(node))
        if rule is None or value_of(node).dtype != torch.float32 or not _has_known_slices(node):
            continue
        call = Insert(model, node)
        x: Any = node.args[0]
        alone = value_of(x).dim() == _VOLUME - 1  # one volume without a batch
        parts = rule(call, arguments(node), call(_aten.unsqueeze.default, x, 0) if alone else x)
        if parts is None:
            continue
        last = _move_inside(call, node, parts)
        made = parts.join(parts.images)
        last.replace_all_uses_with(call(_aten.squeeze.dim, made, 0) if alone else made)
        count += 1
    if count:
        model.graph.eliminate_dead_code()
    return count


def _has_known_slices(node: Node) -> bool:
    """Return whether all sizes but the batch's are numbers: training leaves that open."""
    shapes = [value_of(one).shape[1:] for one in (node, node.args[0])]  # type: ignore[arg-type]
    return all(isinstance(size, int) for shape in shapes for size in shape)


def _move_inside(call: Insert, node: Node, parts: _Parts) -> Node:
    """Apply what follows a node, value by value, to its images; return the last node that they stand for."""
    while len(node.users) == 1:
        (reader,) = node.users
        name, rest = operator_name(reader), reader.args[1:]
        norm = name == _NORM and len(parts.images) == 1  # statistics are of all slices
        if reader.args[0] is not node or not (norm or (name in _ACTIVATIONS and _are_numbers(rest))):
            break
        call.node = reader
        parts.images[:] = [call(reader.target, one, *rest, **reader.kwargs) for one in parts.images]
        node = reader
    return node


def _are_numbers(rest: Any) -> bool:
    return not any(isinstance(one, Node) for one in rest)


def _convolution(call: Insert, given: dict[str, Any], x: Node) -> _Parts:
    weight, bias, groups = given["weight"], given["bias"], int(given["groups"])
    (depth, height, width), stride, dilation = (
        value_of(weight).shape[2:],
        _three(given["stride"]),
        _three(given["dilation"]),
    )
    x, padding = _padding(call, given["padding"], x, (depth, height, width), dilation)
    kernel = _Arranged(call, weight)
    if (height, width) == (1, 1) and stride[1:] == (1, 1) and padding[1:] == (0, 0):
        rows, space = _rows_of_slices(call, x)
        made = call(
            _aten.conv2d.default, rows, kernel(lambda w: w.reshape(*w.shape[:3], 1)), bias, [stride[0], 1],
            [padding[0], 0], [dilation[0], 1], groups,
        )  # fmt: skip
        return _Parts([made], lambda images: _split_width(call, images[0], space))
    windows = take_slices(call, pad_depth(call, x, padding[0], padding[0]), depth, stride[0], dilation[0])
    window: dict[str, Any] = {"stride": list(stride[1:]), "padding": list(padding[1:]), "dilation": list(dilation[1:])}
    if depth == 1:
        image, weights = windows[0], kernel(lambda w: w.squeeze(2))
    elif groups == 1:
        image = call(_aten.cat.default, windows, 1)
        weights = kernel(lambda w: w.transpose(1, 2).flatten(1, 2))
    elif dilation[1] == 1:
        image = _stack_as_rows(call, windows)
        weights = kernel(lambda w: w.transpose(2, 3).flatten(2, 3))
        window["stride"][0] *= depth
        window["padding"][0] *= depth
    else:
        image = _stack_as_channels(call, windows)
        weights = kernel(lambda w: w.flatten(1, 2))
    made = call(_aten.conv2d.default, image, weights, bias, *window.values(), groups)
    return _Parts([made], lambda images: unfold_depth(call, images[0], value_of(call.node).shape[-3]))


def _transposed(call: Insert, given: dict[str, Any], x: Node) -> _Parts:
    """Return one transposed convolution for each place of an output slice between two input slices."""
    weight, groups = given["weight"], int(given["groups"])
    stride, padding, dilation, beyond = (
        _three(given[name]) for name in ("stride", "padding", "dilation", "output_padding")
    )
    slices, kernel, size = value_of(x).shape[2], value_of(weight).shape[2], value_of(call.node).shape[-3]
    count = -(-size // stride[0])
    # For each phase: the taps that reach it, and which input slice its first output slice reads there.
    phases = []
    for first in range(min(stride[0], size)):
        reach = {tap: first + padding[0] - tap * dilation[0] for tap in range(kernel)}
        taps = {tap: at // stride[0] for tap, at in reach.items() if at % stride[0] == 0}
        phases.append(taps or {_NO_TAP: 0})
    before = max(0, -min(at for taps in phases for at in taps.values()))
    behind = max(0, max(at for taps in phases for at in taps.values()) + count - slices)
    padded = pad_depth(call, x, before, behind)
    arranged, images = _Arranged(call, weight), []
    for taps in phases:
        found = [fold_depth(call, padded, at + before, at + before + count) for at in taps.values()]
        image = found[0]
        if len(found) > 1:
            image = call(_aten.cat.default, found, 1) if groups == 1 else _stack_as_channels(call, found)
        weights = arranged(partial(_weights_of_taps, taps=[*taps], together=groups == 1))
        images.append(
            call(
                _aten.conv_transpose2d.input, image, weights, given["bias"], list(stride[1:]), list(padding[1:]),
                list(beyond[1:]), groups, list(dilation[1:]),
            )
        )  # fmt: skip

    def join(parts: list[Node]) -> Node:
        volumes = [unfold_depth(call, one, count) for one in parts]
        if len(volumes) == 1:
            return volumes[0]
        together = call(_aten.flatten.using_ints, call(_aten.stack.default, volumes, 3), 2, 3)
        return together if len(parts) * count == size else call(_aten.slice.Tensor, together, 2, 0, size)

    return _Parts(images, join)


def _weights_of_taps(weight: torch.Tensor, taps: list[int], together: bool) -> torch.Tensor:
    """Return the weights of some taps as those of an image: tap after tap, or channel after channel."""
    found = [torch.zeros_like(weight[:, :, 0]) if tap == _NO_TAP else weight[:, :, tap] for tap in taps]
    return torch.cat(found) if together else torch.stack(found, 1).flatten(0, 1)


def _max_pool(call: Insert, given: dict[str, Any], x: Node) -> _Parts:
    kernel, padding, dilation = (_three(given[name]) for name in ("kernel_size", "padding", "dilation"))
    stride = _three(given["stride"] or given["kernel_size"])
    made = x
    for dims in ((1, 2), (0,)):
        window = [[one[dim] for dim in dims] for one in (kernel, stride, padding, dilation)]
        if not all(one == [1] * len(dims) for one in window[:2]) or any(window[2]):
            made = _pool_along(call, made, window, bool(given["ceil_mode"]))
    return _Parts([made], lambda images: images[0])


def _pool_along(call: Insert, x: Node, window: list[list[int]], ceil: bool) -> Node:
    if len(window[0]) > 1:
        pooled = call(_aten.max_pool2d.default, fold_depth(call, x), *window, ceil)
        return unfold_depth(call, pooled, value_of(x).shape[2])
    rows, space = _rows_of_slices(call, x)
    (kernel,), (stride,), (padding,), (dilation,) = window
    pooled = call(_aten.max_pool2d.default, rows, [kernel, 1], [stride, 1], [padding, 0], [dilation, 1], ceil)
    return _split_width(call, pooled, space)


def _average_pool(call: Insert, given: dict[str, Any], x: Node) -> _Parts | None:
    if given["divisor_override"] is not None:
        return None
    kernel, padding = _three(given["kernel_size"]), _three(given["padding"])
    stride = _three(given["stride"] or given["kernel_size"])
    counted, ceil = bool(given["count_include_pad"]), bool(given["ceil_mode"])
    if counted and padding[0]:
        x = pad_depth(call, x, padding[0], padding[0])
    volumes = []
    for run in average_windows(
        value_of(x).shape[2], value_of(call.node).shape[-3], kernel[0], stride[0], 0 if counted else padding[0]
    ):
        part = cut_depth(call, x, run.begin, run.begin + (run.windows - 1) * stride[0] + run.taps)
        windows = take_slices(call, part, run.taps, stride[0], 1)
        image = _stack_as_rows(call, windows)
        pooled = call(
            _aten.avg_pool2d.default, image, [kernel[1] * run.taps, kernel[2]], [stride[1] * run.taps, stride[2]],
            [padding[1] * run.taps, padding[2]], ceil, counted,
        )  # fmt: skip
        volumes.append(unfold_depth(call, pooled, run.windows))
    made = volumes[0] if len(volumes) == 1 else call(_aten.cat.default, volumes, 2)
    return _Parts([made], lambda images: images[0])


def _adaptive_average(call: Insert, given: dict[str, Any], x: Node) -> _Parts | None:
    wanted, sizes = _three(given["output_size"]), value_of(x).shape[2:]
    if wanted == (1, 1, 1):
        made = call(_aten.mean.dim, x, [-3, -2, -1], True)
    elif not any(size % out for size, out in zip(sizes, wanted, strict=True)):
        window = [size // out for size, out in zip(sizes, wanted, strict=True)]
        plain = {"padding": 0, "ceil_mode": False, "count_include_pad": True, "divisor_override": None}
        return _average_pool(call, {"kernel_size": window, "stride": window, **plain}, x)
    else:
        slices = []
        for index in range(wanted[0]):
            first, end = index * sizes[0] // wanted[0], -(-(index + 1) * sizes[0] // wanted[0])
            part = call(_aten.mean.dim, cut_depth(call, x, first, end), [2], False)
            slices.append(call(_aten.adaptive_avg_pool2d.default, part, list(wanted[1:])))
        made = call(_aten.stack.default, slices, 2)
    return _Parts([made], lambda images: images[0])


def _resize(target: Any) -> _Rule:
    def resize(call: Insert, given: dict[str, Any], x: Node) -> _Parts:
        corners = (given["align_corners"],) if "align_corners" in given else ()
        sizes, factors = given["output_size"], given["scale_factors"]

        def along(dims: slice, size: int, same: int | None) -> list[Any]:
            width = [] if same is None else [size]
            factor = [] if same is None else [1.0]
            if sizes is not None:
                return [[*_three(sizes)[dims], *width], *corners, None]
            return [None, *corners, [*factors[dims], *factor]]

        rows, space = _rows_of_slices(call, x)
        wide = _split_width(call, call(target, rows, *along(slice(0, 1), value_of(rows).shape[3], 1)), space)
        made = call(target, fold_depth(call, wide), *along(slice(1, 3), 0, None))
        return _Parts([made], lambda images: unfold_depth(call, images[0], value_of(call.node).shape[-3]))

    return resize


def _rows_of_slices(call: Insert, x: Node) -> tuple[Node, list[int]]:
    """Return a volume as an image with a row for each slice, and height and width of the slices."""
    return call(_aten.flatten.using_ints, x, 3, 4), list(value_of(x).shape[3:])


def _split_width(call: Insert, x: Node, space: list[int]) -> Node:
    return call(_aten.reshape.default, x, [-1, *value_of(x).shape[1:3], *space])


def _stack_as_rows(call: Insert, windows: list[Node]) -> Node:
    """Return images whose rows are those of all windows in turn: first row of each, second row of each, …"""
    if len(windows) == 1:
        return windows[0]
    return call(_aten.flatten.using_ints, call(_aten.stack.default, windows, 3), 2, 3)


def _stack_as_channels(call: Insert, windows: list[Node]) -> Node:
    """Return images in which the channels of all windows are neighbours, so that groups stay whole."""
    return call(_aten.flatten.using_ints, call(_aten.stack.default, windows, 2), 1, 2)


def _padding(
    call: Insert, given: Any, x: Node, kernel: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[Node, tuple[int, ...]]:
    """Return the input and its padding in numbers; padding that differs before and behind is made here."""
    if given == "valid":
        return x, (0, 0, 0)
    if given != "same":
        return x, _three(given)
    total = [step * (size - 1) for size, step in zip(kernel, dilation, strict=True)]
    if any(one % 2 for one in total):
        pads = [pad for one in reversed(total) for pad in (one // 2, one - one // 2)]
        return call(_aten.constant_pad_nd.default, x, pads, 0.0), (0, 0, 0)
    return x, tuple(one // 2 for one in total)


class _Arranged:
    """Weights in another arrangement: a constant, which training can change if it could change the weights."""

    def __init__(self, call: Insert, weight: Node) -> None:
        self.call, self.weight = call, weight

    def __call__(self, arrange: Callable[[torch.Tensor], torch.Tensor]) -> Node:
        model, data = self.call.model, tensor_of(self.call.model, self.weight)
        assert data is not None
        with model.graph.inserting_before(self.call.node):
            made = add_constant(model, f"_slices_of_{self.weight.name}", arrange(data).contiguous())
        name = str(made.target)
        if isinstance(_attribute(model, str(self.weight.target)), torch.nn.Parameter):
            buffer = getattr(model, name)
            delattr(model, name)
            model.register_parameter(name, torch.nn.Parameter(buffer))
        return made


def _attribute(model: GraphModule, path: str) -> Any:
    found: Any = model
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _three(given: Any) -> tuple[int, ...]:
    numbers = [given] if isinstance(given, int) else list(given)
    return tuple(int(one) for one in (numbers * 3 if len(numbers) == 1 else numbers))


def _with_constant_weights(rule: _Rule) -> _Rule:
    """Return the rule for layers whose weights are constant; computed ones stay."""

    def check(call: Insert, given: dict[str, Any], x: Node) -> _Parts | None:
        return None if tensor_of(call.model, given["weight"]) is None else rule(call, given, x)

    return check


_RULES: dict[str, _Rule] = {
    "aten.conv3d.default": _with_constant_weights(_convolution),
    "aten.conv3d.padding": _with_constant_weights(_convolution),
    "aten.conv_transpose3d.input": _with_constant_weights(_transposed),
    "aten.max_pool3d.default": _max_pool,
    "aten.avg_pool3d.default": _average_pool,
    "aten.adaptive_avg_pool3d.default": _adaptive_average,
    "aten.upsample_nearest3d.vec": _resize(_aten.upsample_nearest2d.vec),
    "aten.upsample_trilinear3d.vec": _resize(_aten.upsample_bilinear2d.vec),
}
