"""Cut the ranges of tensors where the outputs have less noise then: finer steps for all values cost a few that are cut off.

Each tensor is tried alone, with all others in float, so the order does not matter.

Example:
    >>> fit_ranges(quantized, {"conv", "add"}, samples, run, measure)
    (('conv', 0.8),)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Graph, Model, copy_model
from openneutron.litert.passes.float_twin import float_twin
from openneutron.quantize_litert.find_noise import QuantizedTensor, Run, count_samples, differences, quantized_tensors

Array = npt.NDArray[Any]

_SHARES: Final = (0.8, 0.65, 0.5)  # of a range, one after the other while there is less noise
_SLIGHT: Final = 0.9  # where the first is worse
_MOST: Final = 128  # tensors that are tried, those with most noise
_LEAST: Final = 2e-3  # of the noise of an output: tensors with less stay as they are


def fit_ranges(
    model: Model, names: Collection[str], samples: Sequence[Sequence[Array]], run: Run,
    measure: Callable[[Sequence[Array]], Array],
) -> tuple[tuple[str, float], ...]:  # fmt: skip
    """Return the share that is left of a range, by the names of float tensors; only those in `names` are cut.

    `run` makes a function of a float model, `measure` gives the power of each output.
    """
    tensors = quantized_tensors(model.main)
    exact = run(float_twin(model, steps=()))
    samples = samples[: count_samples(tensors)]
    base = [exact(sample) for sample in samples]

    def noise_of(tensor: QuantizedTensor, share: float) -> Array:
        rounded = run(float_twin(_with_range(model, tensor, share), steps=set(tensor.indices)))
        found = [measure(differences(rounded(one), right)) for one, right in zip(samples, base, strict=True)]
        return np.asarray(np.sum(found, axis=0))

    whole = [noise_of(one, 1.0) for one in tensors]
    total = np.maximum(np.sum(whole, axis=0), np.finfo(np.float64).tiny)
    found: dict[str, float] = {}
    order = np.argsort([-(noise / total).max() for noise in whole], kind="stable")
    for tensor, noise in ((tensors[at], whole[at]) for at in order[:_MOST]):
        own = _names(model.main, tensor) & set(names)
        if not own or (noise / total).max() < _LEAST:
            continue
        best, share = float((noise / total).sum()), 1.0
        for one in _SHARES:
            figure = float((noise_of(tensor, one) / total).sum())
            if figure >= best:
                break
            best, share = figure, one
        if share == 1.0 and float((noise_of(tensor, _SLIGHT) / total).sum()) < best:
            share = _SLIGHT
        if share < 1.0:
            found |= dict.fromkeys(own, share)
    return tuple(sorted(found.items()))


def _with_range(model: Model, tensor: QuantizedTensor, share: float) -> Model:
    """Return the model with the steps of a tensor times `share`."""
    made = copy_model(model)
    for at in tensor.indices:
        one = made.main.tensors[at]
        assert one.quantization is not None
        one.quantization = replace(one.quantization, scale=tuple(scale * share for scale in one.quantization.scale))
    return made


def _names(graph: Graph, tensor: QuantizedTensor) -> set[str]:
    """Return the names that tensors have in the float model: of an input, that of what is quantized first."""
    producers = graph.producers()
    first = [graph.operators[producers[at]] for at in tensor.indices if at in producers]
    given = {graph.tensors[op.inputs[0]].name for op in first if op.code == "QUANTIZE"}
    return given | {graph.tensors[at].name for at in tensor.indices}
