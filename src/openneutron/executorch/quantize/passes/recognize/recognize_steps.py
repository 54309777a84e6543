"""RecognizeSteps: recognises the steps of an unrolled loop, such as `for x in frames: h = cell(x, h)`.

Exporting writes every step out. With an observer per step, steps would have different scales and could not become one loop
body. So the same operator of different steps gets the same role, as in `nn.GRU`, and shares its observer.

Before:  h1 = tanh(linear(h0, w)); h2 = tanh(linear(h1, w)); h3 = …
After:   the same; all linears have one role, all tanhs another
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from openneutron.compiler.passes.rolling.body import LEAST_STEPS
from openneutron.executorch.fx import note_unrolled, operator_name, value_of
from openneutron.executorch.quantize.passes._attributes import add_constant, tensor_of
from openneutron.executorch.quantize.passes._insert import ROLE_KEY, is_zero

_WITH_WEIGHTS = "aten.linear.default"
# They select a part by its number, another one in each step.
_PICKS = frozenset({"aten.select.int", "aten.slice.Tensor"})
# Operators that the compiler can repeat in a loop.
_ALLOWED = _PICKS | {
    _WITH_WEIGHTS, "aten.add.Tensor", "aten.sub.Tensor", "aten.rsub.Scalar", "aten.mul.Tensor", "aten.sigmoid.default",
    "aten.tanh.default", "aten.relu.default", "aten.hardtanh.default", "aten.hardsigmoid.default", "aten.unsqueeze.default",
    "aten.squeeze.dim", "aten.squeeze.dims", "aten.view.default", "aten.reshape.default",
}  # fmt: skip


def recognize_steps(model: GraphModule) -> int:
    """Give the same operators of different steps equal roles; returns the number of loops found."""
    calls = [node for node in model.graph.nodes if node.op == "call_function"]
    place = {node: at for at, node in enumerate(calls)}
    found = 0
    for weight in model.graph.find_nodes(op="get_attr"):
        readers = sorted(place[user] for user in weight.users if _has_weight(user, weight))
        found += sum(_recognize(model, calls, place, some) for some in _evenly_spaced(readers))
    return found


def _evenly_spaced(places: list[int]) -> Iterator[list[int]]:
    """Yield runs of evenly spaced places; the first step may be shorter if it begins with zeros."""
    start = 0
    while len(places) - start >= LEAST_STEPS:
        end = start + 2
        while end < len(places) and places[end] - places[end - 1] == places[start + 1] - places[start]:
            end += 1
        if end - start >= LEAST_STEPS:
            yield places[start:end]
        start = end - 1


def _has_weight(node: Node, weight: Node) -> bool:
    return operator_name(node) == _WITH_WEIGHTS and node.args[1] is weight and ROLE_KEY not in node.meta


def _recognize(model: GraphModule, calls: list[Node], place: dict[Node, int], readers: list[int]) -> int:
    period = readers[1] - readers[0]
    if ROLE_KEY in calls[readers[0]].meta:
        return 0  # recognised by another weight of the same steps
    likeness: dict[int, Any] = {}

    def alike(at: int) -> bool:
        for one in (at, at + period):
            if one not in likeness:
                likeness[one] = _likeness(model, calls[one]) if 0 <= one < len(calls) else None
        return likeness[at] is not None and likeness[at] == likeness[at + period]

    while len(readers) >= LEAST_STEPS and not all(map(alike, range(readers[0], readers[0] + period))):
        readers = readers[1:]  # the first step may begin with a constant
    if len(readers) < LEAST_STEPS or not all(map(alike, range(readers[0], readers[-1] - period + 1))):
        return 0
    if not _feeds(calls, place, readers[1], readers[2]):
        return 0
    first, end = readers[0], readers[-1] - period + 1
    while first > readers[0] - period and alike(first - 1):
        first -= 1
    while end < readers[-1] and alike(end):
        end += 1
    steps = calls[first : end + period]
    name = steps[0].name
    for at, node in enumerate(steps):
        node.meta[ROLE_KEY] = (name, at % period)
        note_unrolled(node, name)
    for before, node in zip(steps[:period], steps[period : 2 * period], strict=True):
        _begin(model, before, node)
    return 1


def _likeness(model: GraphModule, node: Node) -> Any:
    """Return a key that is equal for the same operator of different steps; None if the compiler cannot repeat it."""
    name, value = operator_name(node), value_of(node)
    if name not in _ALLOWED or ROLE_KEY in node.meta or not isinstance(value, torch.Tensor):
        return None

    def argument(one: Any) -> Any:
        if isinstance(one, Node):
            # The first step may begin with zeros, later ones with the state of the step before.
            data = tensor_of(model, one)
            return "a tensor" if data is None or is_zero(model, one) else _content(data)
        return "a number" if name in _PICKS else str(one)

    return name, tuple(value.shape), value.dtype, tuple(map(argument, node.args)), tuple(node.kwargs.items())


def _content(data: torch.Tensor) -> tuple[tuple[int, ...], bytes]:
    """Return shape and bytes of a constant: constants that are computed in each step are copies of each other."""
    return tuple(data.shape), hashlib.sha256(data.contiguous().numpy().tobytes()).digest()


def _feeds(calls: list[Node], place: dict[Node, int], before: int, after: int) -> bool:
    """Return whether one reader of the weights depends on the other: side-by-side layers with shared weights are no steps."""
    waiting, seen = [calls[after]], set()
    while waiting:
        for source in waiting.pop().all_input_nodes:
            if source is calls[before]:
                return True
            if place.get(source, -1) > before and source not in seen:
                seen.add(source)
                waiting.append(source)
    return False


def _begin(model: GraphModule, first: Node, second: Node) -> None:
    """Give the constant initial state of the first step the same role as the state that the second step reads."""
    for at, (source, later) in enumerate(zip(first.args, second.args, strict=True)):
        if isinstance(later, Node) and ROLE_KEY in later.meta and isinstance(source, Node) and is_zero(model, source):
            with model.graph.inserting_before(first):
                zeros = add_constant(model, "zero_state", torch.zeros(value_of(source).shape))
            zeros.meta[ROLE_KEY] = later.meta[ROLE_KEY]
            first.update_arg(at, zeros)
