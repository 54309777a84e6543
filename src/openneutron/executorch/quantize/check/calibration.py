"""Watch a calibration: what its samples leave open, a sentence each.

Example:
    >>> watch = CalibrationWatch(prepared, batches)
    >>> prepared(*batches[0])
    >>> watch.after_sample()
    >>> watch.notes()
    ('calibration has 1 sample: …',)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from openneutron.executorch.fx import FloatReason, changes, is_changed, operator_name
from openneutron.executorch.quantize.check.keep_float import why_float

_FEW: Final = 8  # samples; the range of so few is a tenth and more below that of a hundred
_GROWN: Final = 0.1  # share of a range; a smaller growth clips next to nothing
_MANY_TENSORS: Final = 0.25  # of all tensors; a few always find their largest value late
_ALIKE: Final = 1e-3  # share of the input's range that samples differ by, where they show one and the same thing
_PARTS: Final = 4  # of a calibration, whose largest states are compared
_OVERALL: Final = 2.0  # times the first part: a state that varies around a value rises less by chance
_STILL: Final = 1.1  # times the part before, from which on a state goes on growing
_SUMS: Final = frozenset({"aten.add.Tensor", "aten.sub.Tensor"})
_SAME_VALUES: Final = frozenset(
    f"aten.{name}"
    for name in ("clone.default", "view.default", "reshape.default", "squeeze.dim", "squeeze.dims", "unsqueeze.default",
                 "_to_copy.default", "to.dtype", "contiguous.default", "alias.default")
)  # fmt: skip

Range = tuple[float, float]


class CalibrationWatch:
    """Follows the ranges of observers and states from sample to sample."""

    def __init__(self, prepared: GraphModule, batches: Sequence[tuple[torch.Tensor, ...]]) -> None:
        self._batches = batches
        self._observers = [one for one in prepared.modules() if isinstance(getattr(one, "min_val", None), torch.Tensor)]
        self._before: list[Range | None] = [None] * len(self._observers)
        self._now = list(self._before)
        self._model = prepared
        changed = [node for node in prepared.graph.find_nodes(op="get_attr") if is_changed(node)]
        self._stored = {str(node.target) for node in changed if any(user.op == "call_module" for user in node.users)}
        self._states = sorted(self._stored | {str(node.target) for node in changed if _reaches_observer(node)})
        self._sums = {str(node.target) for node in changed if _is_running_sum(node)}
        self._sizes: dict[str, list[Range]] = {name: [] for name in self._states}

    def after_sample(self) -> None:
        """Note the ranges after one more sample."""
        self._before, self._now = self._now, [_range(one) for one in self._observers]
        for name in self._states:
            value = self._model.get_buffer(name)
            if value.numel() and bool(torch.isfinite(value).all()):
                low, high = map(float, torch.aminmax(value))
                self._sizes[name].append((low, high))

    def notes(self) -> tuple[str, ...]:
        """Return advice about the samples."""
        count = len(self._batches)
        found = []
        if count < _FEW:
            some = f"{count} sample{'s' if count != 1 else ''}"
            found.append(
                f"calibration has {some}: ranges may cut off what others contain; give 32 and more, of all kinds"
            )
        if count > 1 and self._are_alike():
            found.append(f"all {count} calibration samples are nearly the same: give different ones")
        grown = self._share_widened()
        if count >= _FEW and grown > _MANY_TENSORS:
            found.append(
                f"the last of {count} calibration samples still widened {grown:.0%} of the ranges: give more samples"
            )
        return tuple(found)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each state that calibration leaves growing."""
        found = []
        for name in self._states:
            seen = self._sizes[name]
            grows = _goes_on_growing([max(abs(low), abs(high)) for low, high in seen])
            # A running sum spreads by the square root of the number of calls, which is too slow to show up as growth.
            spreads = name in self._sums and any(one != seen[0] for one in seen)
            if grows or spreads:
                low, high = min(0.0, *(one[0] for one in seen)), max(0.0, *(one[1] for one in seen))
                place = f"from {low:.4g} to {high:.4g}"
                what = (
                    f"still grows after {len(seen)} calibration samples"
                    if grows
                    else f"sums up its inputs without end, of which {len(seen)} calibration samples show the start"
                )
                found.append(
                    f"state {name} {what}: it is stored {place} and sticks there; "
                    "calibrate for as long as it runs, reset it in time, or give it room (--state-headroom 4)"
                    if name in self._stored
                    else f"state {name} {what}: it counts on exactly, but what is "
                    f"computed with it has ranges for values {place} of it; calibrate as long as it runs, or reset it in time"
                )
        return tuple(found)

    def _are_alike(self) -> bool:
        first = self._batches[0]
        for position, value in enumerate(first):
            if not value.numel():
                continue
            others = [batch[position] for batch in self._batches[1:]]
            if not value.is_floating_point():
                if any(not torch.equal(one, value) for one in others):
                    return False
                continue
            if any(one.shape != value.shape for one in others):
                return False
            width = float(value.max() - value.min()) or float(value.abs().max()) or 1.0
            if any(not float((one - value).abs().max()) <= _ALIKE * width for one in others):
                return False
        return True

    def _share_widened(self) -> float:
        """Return the share of tensors whose range the last sample widened."""
        known = [(a, b) for a, b in zip(self._before, self._now, strict=True) if a is not None and b is not None]
        wider = sum(1 for a, b in known if (b[1] - b[0]) > (1 + _GROWN) * (a[1] - a[0]))
        return wider / len(known) if known else 0.0


def _range(observer: Any) -> Range | None:
    """Return the range that an observer has seen so far; that of one channel where it has several."""
    low, high = observer.min_val, observer.max_val
    if not low.numel() or low.numel() > 1 or not bool(torch.isfinite(low).all() & torch.isfinite(high).all()):
        return None
    return float(low), float(high)


def _reaches_observer(node: Node) -> bool:
    """Return whether a quantized operator reads a value, directly or through a counter that stays in float."""
    counted, waiting = {node}, [node]
    while waiting:
        users = list(waiting.pop().users)
        if any(user.op == "call_module" for user in users):
            return True
        new = [user for user in users if user not in counted and why_float(user) is FloatReason.COUNTER]
        counted.update(new)
        waiting += new
    return False


def _is_running_sum(state: Node) -> bool:
    """Return whether all that a model writes to a state is its value and something that the inputs alone decide."""
    same = state.graph.find_nodes(op="get_attr", target=state.target, sort=False)
    written = [user.args[1] for one in same for user in one.users if changes(user, one) and len(user.args) > 1]
    return bool(written) and all(_adds_inputs(one, str(state.target)) for one in written)


def _adds_inputs(value: Any, state: str, depends: bool = False) -> bool:
    """Return whether a value is that of a state, plus or minus what depends on inputs and on no state."""
    if not isinstance(value, Node):
        return False
    if value.op == "get_attr":
        return depends and str(value.target) == state
    if value.op == "call_module" or operator_name(value) in _SAME_VALUES:
        return _adds_inputs(value.args[0], state, depends)
    if operator_name(value) not in _SUMS:
        return False
    left, right = value.args[:2]
    sides = [(left, right)]
    if operator_name(value) == "aten.add.Tensor" and not value.kwargs:
        sides.append((right, left))
    for kept, term in sides:
        leaves = _leaves(term)
        if not any(one.op == "get_attr" and is_changed(one) for one in leaves):
            given = depends or any(one.op == "placeholder" for one in leaves)
            if _adds_inputs(kept, state, given):
                return True
    return False


def _leaves(term: Any) -> set[Node]:
    """Return the inputs, constants and states that a value depends on."""
    seen = {term} if isinstance(term, Node) else set()
    waiting = list(seen)
    while waiting:
        new = [one for one in waiting.pop().all_input_nodes if one not in seen]
        seen.update(new)
        waiting += new
    return {one for one in seen if not one.all_input_nodes}


def _goes_on_growing(sizes: Sequence[float]) -> bool:
    """Return whether the largest size rises from each part of a calibration to the next, at the end by a tenth and more."""
    count = min(_PARTS, len(sizes))
    if count < 2:
        return False
    edges = [at * len(sizes) // count for at in range(count + 1)]
    peaks = [max(sizes[one:other]) for one, other in pairwise(edges)]
    rises = all(other > one for one, other in pairwise(peaks))
    return rises and peaks[-1] > max(_STILL * peaks[-2], _OVERALL * peaks[0])
