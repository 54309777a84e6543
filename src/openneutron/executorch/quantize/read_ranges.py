"""Ranges for the operators that read a value: what an activation behind a layer does not distinguish needs no steps.

    conv ──► -40 .. 60 ──► hard swish            all below -3 is 0 behind it: the range is -3 .. 60
    conv ──► -25 .. 20 ──► leaky ReLU by 0.1     an error below 0 counts a hundredth: a range of -9 .. 19 is better

The error of a range is measured behind the elementwise operators that alone read the value, on a histogram of it.
Observers without a histogram keep their own range, without the ends behind which the result no longer changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.quantize.headroom import PartObserver
from openneutron.executorch.quantize.passes._attributes import tensor_of

_UNARY: Final = frozenset(
    f"aten.{name}.default" for name in (
        "relu", "relu_", "relu6", "relu6_", "hardtanh", "hardtanh_", "clamp", "clamp_", "leaky_relu", "leaky_relu_", "elu",
        "elu_", "hardswish", "hardswish_", "hardsigmoid", "hardsigmoid_", "sigmoid", "tanh", "silu", "gelu",
    )
)  # fmt: skip
_PRELU: Final = "aten.prelu.default"
_LIMITS: Final = frozenset({"aten.maximum.default", "aten.minimum.default"})
_POINTS: Final = 2048  # of a function whose flat ends are looked for
_FLAT: Final = 1 / 1024  # of the result's range: a quarter of a step of 8 bits, which no reader sees
_MOST_SLOPES: Final = 8  # of a PReLU's channels, evenly spaced in their order
_BEYOND: Final = 1.1  # times the ends seen, where values of other samples are assumed
_UNSEEN: Final = 2.0  # of them at either end
_LOW: Final = (1.1, *(at / 32 for at in range(32, 0, -1)))  # shares of either end that are tried
_HIGH: Final = (1.1, *(1.0 + at / 50 for at in (3, 2, 1)), *(1.0 - at / 50 for at in range(40)))
_ROUNDS: Final = 2  # over both ends
_ROOM: Final = 1 / 8  # of a result's range at either end, which costs it 1 dB
_MOST_CUT: Final = 1.5  # times that a range seen may be larger than the one that leaves the least error

Function = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class _Read:
    """An observer and the function of its values that alone is read, as [points, channels] of [points, 1]."""

    observer: Any
    function: Function


def fit_ranges(prepared: GraphModule) -> int:
    """Give observers of 8 bits the range that is best behind their readers; returns how many changed.

    Results of the network are read by its user. Their ranges have room beyond what was seen: a result that saturates is
    wrong, and a finer step gains little.

    Example:
        >>> calibrate(prepared, batches)
        >>> fit_ranges(prepared)
        12
    """
    count = 0
    groups = _groups(prepared)
    for read in _reads(prepared, groups):
        found = _range(read)
        if found is not None:
            _fix(read.observer, *found)
            count += 1
    for observer, nodes in groups:
        if all(one.op == "output" for node in nodes for one in node.users):
            found = _with_room(observer)
            if found is not None:
                _fix(observer, *found)
                count += 1
    return count


def _with_room(observer: Any) -> tuple[float, float] | None:
    """Return the range seen and some more, None where it is far larger than the observer's own: outliers are cut off."""
    low, high = min(float(observer.min_val), 0.0), max(float(observer.max_val), 0.0)
    scale = float(observer.calculate_qparams()[0])
    if not 0.0 < high - low < _MOST_CUT * 255 * scale:
        return None
    return low * (1 + _ROOM), high * (1 + _ROOM)


def _groups(prepared: GraphModule) -> list[tuple[Any, list[Node]]]:
    """Return the observers of INT8 activations with the nodes that call each."""
    calls: dict[int, list[Node]] = {}
    observers: dict[int, Any] = {}
    for node in prepared.graph.find_nodes(op="call_module"):
        observer = prepared.get_submodule(str(node.target))
        affine = getattr(observer, "qscheme", None) is torch.per_tensor_affine
        narrow = affine and getattr(observer, "dtype", None) is torch.int8 and not isinstance(observer, PartObserver)
        if narrow and hasattr(observer, "min_val") and observer.min_val.numel() == 1:
            calls.setdefault(id(observer), []).append(node)
            observers[id(observer)] = observer
    return [(observers[key], nodes) for key, nodes in calls.items()]


def _reads(prepared: GraphModule, groups: Sequence[tuple[Any, list[Node]]]) -> Iterator[_Read]:
    """Find the observers whose values are read by elementwise operators alone."""
    for observer, nodes in groups:
        group = set(nodes)
        first = [one for one in nodes if not _is_constant(prepared, one.args[0]) and not _comes_from(one, group)]
        function = _function(prepared, first[0], group) if len(first) == 1 else None
        if function is not None:
            yield _Read(observer, function)


def _comes_from(call: Node, group: set[Node]) -> bool:
    """Return whether an observed value is computed from another one of the same observer."""
    maker = call.args[0]
    return isinstance(maker, Node) and any(one in group for one in maker.all_input_nodes)


def _is_constant(prepared: GraphModule, value: Any) -> bool:
    return isinstance(value, Node) and tensor_of(prepared, value) is not None


def _function(prepared: GraphModule, call: Node, group: set[Node]) -> Function | None:
    """Return what a value is read as: the operators behind it until one that is not elementwise."""
    steps: list[Function] = []
    while len(call.users) == 1:
        reader = next(iter(call.users))
        step = _step(prepared, reader, call)
        if step is None:
            break
        steps.append(step)
        while len(reader.users) == 1 and (fused := _step(prepared, next(iter(reader.users)), reader)) is not None:
            reader = next(iter(reader.users))
            steps.append(fused)
        behind = [one for one in reader.users if one.op == "call_module"]
        if len(behind) != 1 or len(reader.users) != 1 or behind[0] in group:
            break  # in the same group, values behind have the same range, which limits alone may share
        call = behind[0]
    if not steps:
        return None

    def run(values: torch.Tensor) -> torch.Tensor:
        for step in steps:
            values = step(values)
        return values

    return run


def _step(prepared: GraphModule, node: Node, read: Node) -> Function | None:
    """Return an operator as a function of [points, channels], None where it is no elementwise one of `read` alone."""
    name = operator_name(node)
    if name in _UNARY and node.args[0] is read:
        rest, named, target = node.args[1:], dict(node.kwargs), node.target
        if any(isinstance(one, Node) for one in (*rest, *named.values())):
            return None
        return lambda values: target(values.clone(), *rest, **named)  # type: ignore[operator]
    if name == _PRELU and node.args[0] is read:
        slopes = _constant(prepared, arguments(node)["weight"])
        if slopes is None:
            return None
        some = slopes.double().flatten().sort().values
        some = some[:: max(1, -(-some.numel() // _MOST_SLOPES))]
        return lambda values: torch.where(values >= 0, values, values * some)
    if name in _LIMITS and read in node.args:
        other = next((one for one in node.args if one is not read), None)
        limit = _constant(prepared, other)
        if limit is None or limit.numel() != 1:
            return None
        bound, target = limit.double().reshape(()), node.target
        return lambda values: target(values, bound)  # type: ignore[operator]
    return None


def _constant(prepared: GraphModule, value: Any) -> torch.Tensor | None:
    """Return a constant that is read, behind its observer or not."""
    while isinstance(value, Node) and value.op == "call_module":
        value = value.args[0]
    return tensor_of(prepared, value) if isinstance(value, Node) else None


def _range(read: _Read) -> tuple[float, float] | None:
    observer = read.observer
    low, high = min(float(observer.min_val), 0.0), max(float(observer.max_val), 0.0)
    if not low < high < float("inf") or low == -float("inf"):
        return None
    ends = _without_flat_ends(read.function, low, high)
    histogram = getattr(observer, "histogram", None)
    if histogram is None or hasattr(observer, "percentile"):
        scale, zero = observer.calculate_qparams()
        own = (-128 - float(zero)) * float(scale), (127 - float(zero)) * float(scale)
        cut = max(own[0], ends[0]), min(own[1], ends[1])
        return None if cut == own else cut
    bins = histogram.numel()
    width = (float(observer.max_val) - float(observer.min_val)) / bins
    values = float(observer.min_val) + width * (torch.arange(bins, dtype=torch.float64) + 0.5)
    values[0], values[-1] = float(observer.min_val), float(observer.max_val)  # many values lie at the end of a clamp
    # Other samples have values beyond those seen; where few were seen, cutting these off would cost more than coarser steps.
    values = torch.cat([values, torch.tensor([low, high], dtype=torch.float64) * _BEYOND])
    counts = torch.cat([histogram.double(), torch.full((2,), _UNSEEN, dtype=torch.float64)])
    return _least_error(read.function, values[counts > 0], counts[counts > 0], *ends)


def _without_flat_ends(function: Function, low: float, high: float) -> tuple[float, float]:
    """Return the part of a range, with 0 in it, outside which a function changes by less than a quarter of a step."""
    points = torch.linspace(low, high, _POINTS, dtype=torch.float64)[:, None]
    results = function(points)
    least = _FLAT * float(results.max() - results.min())
    below = ((results - results[:1]).abs() <= least).all(1)
    above = ((results - results[-1:]).abs() <= least).all(1)
    first = int(below.int().cumprod(0).sum()) - 1
    last = _POINTS - int(above.int().flip(0).cumprod(0).sum())
    if first >= last:
        return low, high  # flat as a whole
    return min(float(points[first]), 0.0), max(float(points[last]), 0.0)


def _least_error(
    function: Function, values: torch.Tensor, counts: torch.Tensor, low: float, high: float
) -> tuple[float, float]:
    """Return the range whose steps leave the least error behind the function."""
    exact = function(values[:, None])
    best, least = (low, high), _error(function, values, counts, exact, low, high)
    for _ in range(_ROUNDS):
        before = best
        lows, highs = (_LOW if low < 0 else (1.0,)), (_HIGH if high > 0 else (1.0,))
        for a, b in [*((low * share, best[1]) for share in lows), *((None, high * share) for share in highs)]:
            start = best[0] if a is None else a
            if start == b:
                continue
            error = _error(function, values, counts, exact, start, b)
            if error < least:
                best, least = (start, b), error
        if best == before:
            break
    return best


def _error(
    function: Function, values: torch.Tensor, counts: torch.Tensor, exact: torch.Tensor, low: float, high: float
) -> float:
    scale, zero = _parameters(low, high)
    levels = function(((torch.arange(256, dtype=torch.float64) - 128 - zero) * scale)[:, None])
    steps = ((values / scale).round() + zero).clamp(-128, 127).long() + 128
    return float(((levels[steps] - exact).square().mean(1) * counts).sum())


def _parameters(low: float, high: float) -> tuple[float, int]:
    scale = max((high - low) / 255, torch.finfo(torch.float32).tiny)
    return scale, int(min(max(round(-128 - low / scale), -128), 127))


def _fix(observer: Any, low: float, high: float) -> None:
    """Let an observer have this range."""
    scale, zero = _parameters(low, high)
    parameters = (
        torch.tensor([scale], dtype=torch.float32).clamp(min=float(observer.eps)),
        torch.tensor([zero], dtype=torch.int64),
    )
    observer.calculate_qparams = lambda: parameters
