"""Move the ends of tensors' ranges: inward where the outputs have less noise then, outward where it makes no difference.

Finer steps for all values cost a few that are cut off. And a tensor whose steps add little noise can afford coarser ones:
inputs that calibration has not seen hold larger values, which are cut off otherwise. Each tensor is tried alone, with all
others in float, so the order does not matter.

Example:
    >>> fit_ranges(quantized, {"conv", "add"}, samples, run, measure)
    (('add', 0.05, 0.05), ('conv', -0.1, 0.0))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Graph, Model, copy_model
from openneutron.litert.passes.float_twin import float_twin
from openneutron.quantize_litert.find_noise import QuantizedTensor, Run, count_samples, differences, quantized_tensors

Array = npt.NDArray[Any]
Range = tuple[float, float]

_SHARES: Final = (0.8, 0.65, 0.5)  # of an end, one after the other while there is less noise
_SLIGHT: Final = 0.9  # where the first is worse
_MOST: Final = 128  # tensors that are cut, those with most noise
_LEAST: Final = 2e-3  # of the noise of an output: tensors with less are not cut
_MORE_NOISE: Final = 0.2  # of all noise, 0.8 dB: what wider ranges may add at most, the same for each tensor
_FIXED: Final = frozenset({"LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"})  # LiteRT wants one scale
_WIDEST: Final = (
    2.0  # times a range: four times the noise of one tensor is never noticed then, and larger values are rare
)


class Ends(NamedTuple):
    """By what share of the range its ends move outward; inward where negative."""

    low: float = 0.0
    high: float = 0.0

    def of(self, before: Range) -> Range:
        """Return the range with its ends moved; 0 stays inside.

        For the same steps as were measured, `before` has to be what INT8 holds, see `hold`.
        """
        span = before[1] - before[0]
        return min(before[0] - self.low * span, 0.0), max(before[1] + self.high * span, 0.0)


def hold(before: Range) -> Range:
    """Return the range that INT8 holds for another: 0 becomes one of its steps.

    A tensor that has one value in most places loses much or nothing by where that lies between two steps, so what is measured
    with some steps says little of others that are nearly the same.

    Example:
        >>> hold((-3.0, 252.0))
        (-3.0, 252.0)
    """
    low, high = min(before[0], 0.0), max(before[1], 0.0)
    scale = (high - low) / 255
    if not scale:
        return before
    zero = int(np.clip(round(-128 - low / scale), -128, 127))
    return (-128 - zero) * scale, (127 - zero) * scale


def fit_ranges(
    model: Model, names: Collection[str], samples: Sequence[Sequence[Array]], run: Run,
    measure: Callable[[Sequence[Array]], Array],
) -> tuple[tuple[str, float, float], ...]:  # fmt: skip
    """Return how the ends of ranges move, by the names of float tensors; only those in `names` are cut.

    `run` makes a function of a float model, `measure` gives the power of each output.
    """
    fixed = {at for op in model.main.operators if op.code in _FIXED for at in op.outputs}
    tensors = [one for one in quantized_tensors(model.main) if fixed.isdisjoint(one.indices)]
    exact = run(float_twin(model, steps=()))
    count = count_samples(tensors)
    samples = samples[:: max(1, len(samples) // count)][:count]  # from all: held out, and of all classes
    base = [exact(sample) for sample in samples]

    def noise_of(tensor: QuantizedTensor, ends: Ends) -> Array:
        rounded = run(float_twin(_with_ends(model, tensor, ends), steps=set(tensor.indices)))
        found = [measure(differences(rounded(one), right)) for one, right in zip(samples, base, strict=True)]
        return np.asarray(np.sum(found, axis=0))

    whole = [noise_of(one, Ends()) for one in tensors]
    total = np.maximum(np.sum(whole, axis=0), np.finfo(np.float64).tiny)

    def relative_noise_of(tensor: QuantizedTensor, ends: Ends) -> float:
        return float((noise_of(tensor, ends) / total).sum())

    found: dict[str, Ends] = {}
    order = np.argsort([-(noise / total).max() for noise in whole], kind="stable")
    for place, at in enumerate(order):
        tensor, share = tensors[at], float((whole[at] / total).max())
        own, before, ends = _names(model.main, tensor), _range(model.main, tensor), Ends()
        if place < _MOST and own & set(names) and share >= _LEAST:
            ends = _cut(before, float((whole[at] / total).sum()), partial(relative_noise_of, tensor))
        if ends == Ends():
            ends = widen(before, share * len(tensors))
        if ends != Ends():
            found |= dict.fromkeys(own, ends)
    return tuple((name, *found[name]) for name in sorted(found))


def _cut(before: Range, least: float, figure: Callable[[Ends], float]) -> Ends:
    """Return the ends with which a figure is least, found along one end and then along the other."""
    span = before[1] - before[0]
    best = Ends()
    for side in sorted((0, 1), key=lambda side: -abs(before[side])):

        def improves(share: float, side: int = side) -> bool:
            nonlocal best, least
            moved = (share - 1.0) * abs(before[side]) / span
            ends = Ends(moved, best.high) if side == 0 else Ends(best.low, moved)
            found = figure(ends)
            if found < least:
                best, least = ends, found
                return True
            return False

        if before[side] and not (improves(_SHARES[0]) and all(map(improves, _SHARES[1:]))) and not best[side]:
            improves(_SLIGHT)
    return best


def widen(before: Range, noise: float) -> Ends:
    """Return the ends of a wider range; `noise` is the tensor's against that of a mean tensor.

    One that begins or ends at 0 keeps that end: nothing behind a ReLU is negative.

    Example:
        >>> widen((0.0, 6.0), 0.1).of((0.0, 6.0))
        (0.0, 10.392304845413264)
    """
    wider = min(_WIDEST, (1 + _MORE_NOISE / max(noise, 1e-9)) ** 0.5) - 1
    is_open = before[0] < 0, before[1] > 0
    return Ends(*(wider / max(1, sum(is_open)) if one else 0.0 for one in is_open))


def _range(graph: Graph, tensor: QuantizedTensor) -> Range:
    how = graph.tensors[tensor.indices[0]].quantization
    assert how is not None
    scale, zero = how.scalar
    return (-128 - zero) * scale, (127 - zero) * scale


def _with_ends(model: Model, tensor: QuantizedTensor, ends: Ends) -> Model:
    """Return the model with other ends of a tensor's range."""
    if ends == Ends():
        return model
    low, high = ends.of(_range(model.main, tensor))
    scale = (high - low) / 255
    zero = int(np.clip(round(-128 - low / scale), -128, 127))
    made = copy_model(model)
    for at in tensor.indices:
        one = made.main.tensors[at]
        assert one.quantization is not None
        one.quantization = replace(one.quantization, scale=(scale,), zero_point=(zero,))
    return made


def _names(graph: Graph, tensor: QuantizedTensor) -> set[str]:
    """Return the names that tensors have in the float model: of an input, that of what is quantized first."""
    producers = graph.producers()
    first = [graph.operators[producers[at]] for at in tensor.indices if at in producers]
    given = {graph.tensors[op.inputs[0]].name for op in first if op.code == "QUANTIZE"}
    return given | {graph.tensors[at].name for at in tensor.indices}
