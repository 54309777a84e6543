"""A float LiteRT model that is quantized in several ways and compared with itself.

For the process that quantizes: LiteRT runs here, without protection from a model that makes it crash. Samples run through the
float model once. Trials are compared by their float twins, which LiteRT runs several times as fast as INT8 reference kernels.

Example:
    >>> model = FloatModel(data, samples)
    >>> made = model.quantize("int8", (), Methods(round_weights=True))
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Graph, Model, Tensor
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.passes.equalize_channels import Balance, equalize_channels
from openneutron.litert.passes.float_twin import float_twin
from openneutron.litert.passes.last_names import last_names
from openneutron.litert.passes.narrow_operators import narrow_operators
from openneutron.litert.passes.useful_ranges import useful_ranges
from openneutron.litert.passes.widen_operators import widen_operators
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.quantize_litert.find_noise import (
    Noise,
    QuantizedTensor,
    exact_constants,
    measure_noise,
    quantized_tensors,
)
from openneutron.quantize_litert.fit_ranges import Ends, fit_ranges, hold
from openneutron.quantize_litert.layer_moments import LayerMoments
from openneutron.quantize_litert.methods import BALANCES, Methods
from openneutron.quantize_litert.restore_biases import restore_biases
from openneutron.quantize_litert.round_weights import round_weights
from openneutron.quantize_litert.watch import Seen, Watched, add_seen
from openneutron.report.accuracy import nearness
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_arrays import compare_arrays
from openneutron.run.runner import LiteRtRunner

Array = npt.NDArray[Any]
Place = tuple[int, int, int, int]  # a part of an output: its number, an axis, first and last index

_COMPARED: Final = 32  # samples on which two models are compared
_HELD_SHARE: Final = 3  # one in so many samples is held out
_MOST_HELD: Final = 16  # more say no more
_FEWEST_HELD: Final = 8  # fewer say little of others, and leave too few for the ranges
_CHANCE_DB: Final = 1.0  # by so much figures on few samples differ for no reason


class NoTwin(Exception):
    """A quantized model has an operator that LiteRT does not have in float."""


@dataclasses.dataclass(frozen=True)
class _Floating:
    """A float model, the range of each tensor, and the units of channels."""

    data: bytes
    ranges: dict[str, tuple[float, float]]
    units: dict[str, Array]


class FloatModel:
    """The model, what its tensors hold on samples, and its outputs.

    The first samples, so many as `held`, set no ranges and round no weights: what is found without them is judged on them.
    """

    def __init__(self, data: bytes, samples: Sequence[Sequence[Array]], held: int = 0) -> None:
        self.data, self.samples, self.held = data, samples, held
        self.seen: dict[str, Seen] = {}
        self.wanted: list[list[Array]] = []
        watched = Watched(data)
        for number, sample in enumerate(samples):
            values = watched.run(sample)
            if number >= held:
                add_seen(self.seen, values)
            if number < _COMPARED:
                self.wanted.append(watched.outputs())
        self._watched = watched
        self._moments: LayerMoments | None = None
        self._floats: dict[Balance | None, _Floating] = {}

    def search(self, goal: float) -> tuple[Methods, int]:
        """Return the methods that cost no cycles and come nearest to a goal, and how many were tried.

        They are judged on samples that are held out of calibration, where there are enough.
        """
        held = min(_MOST_HELD, len(self.samples) // _HELD_SHARE)
        trials = self if held < _FEWEST_HELD else FloatModel(self.data, self.samples, held)
        return trials._search(goal)

    def _search(self, goal: float) -> tuple[Methods, int]:
        first = [Methods(balance, round_weights=True) for balance in (None, *BALANCES)]
        scores = sorted(((self._score(one, goal), one) for one in first), key=lambda pair: pair[0], reverse=True)
        (highest, best), tried = scores[0], len(scores)
        # Fitting helps as a rule, and what samples say about a balance is partly chance: the second may be better with it.
        fitted = [dataclasses.replace(start, ranges=self._fit_ranges(start)) for _, start in scores[:2]]
        ranked = sorted(((self._score(one, goal), one) for one in fitted if one.ranges), key=lambda pair: pair[0])
        tried += len(ranked)
        # Few samples seldom show what headroom is for, so it is kept where it makes no great difference.
        return (ranked[-1][1] if ranked and ranked[-1][0] > highest - _CHANCE_DB else best), tried

    def _fit_ranges(self, methods: Methods) -> tuple[tuple[str, float, float], ...]:
        made = self.quantize("int8", (), methods)
        last = last_names(made.main)  # what is cut off an output is seen
        names = self.seen.keys() - last
        try:
            return fit_ranges(made, names, self.samples, run_twin, _power)
        except NoTwin:
            return ()

    def quantize(self, activations: str, others: Sequence[str], methods: Methods) -> Model:
        """Quantize with these activations, and with the other width for operators by the names of their outputs."""
        from ai_edge_quantizer import quantizer

        floating = self._floating(methods.balance)
        model, ranges, names = read_model(floating.data), dict(floating.ranges), list(others)
        if activations == "int8":
            exact = _exact_names(model.main, set(others))
            for name, *moved in methods.ranges:
                if name in ranges:  # steps of 16 bits are fine enough: nothing is cut
                    ends = Ends(*(max(one, 0.0) for one in moved) if name in exact else moved)
                    ranges[name] = ends.of(hold(ranges[name]))
        if activations == "int8" and names and (more := widen_operators(model.main, set(names), ranges)):
            ranges |= more
            names += more
        dims = {tensor.name: len(tensor.shape) for tensor in model.main.tensors}
        known = {
            name: {
                side: np.full([1] * dims[name], edge, np.float32)
                for side, edge in zip(("min", "max"), one, strict=True)
            }
            for name, one in ranges.items()
            if name in dims
        }
        made = quantizer.Quantizer(bytearray(write_model(model)), scheme_of(activations, names)).quantize(
            known, enable_progress_report=False, enable_progress_bar=False
        )
        result = read_model(bytes(made.quantized_model))
        if narrow_operators(result.main, ranges):
            drop_tensors(result)
        restore_biases(result, model)
        if methods.round_weights:
            round_weights(result, model, self._layer_moments().of(floating.units))
        return result

    def compare(self, quantized: Model) -> list[OutputAccuracy]:
        """Compare each output of a quantized model, computed by reference kernels, with the float model's."""
        graph = quantized.main
        inputs, outputs = ([graph.tensors[at] for at in side] for side in (graph.inputs, graph.outputs))
        ours = LiteRtRunner(write_model(quantized))

        def run(sample: Sequence[Array]) -> list[Array]:
            given = [_to(value, tensor) for value, tensor in zip(sample, inputs, strict=True)]
            found = ours.run(given).outputs.values()
            return [_from(value, tensor) for value, tensor in zip(found, outputs, strict=True)]

        return self._compare(run)

    def noise(self, methods: Methods, parts: Sequence[Place]) -> tuple[list[QuantizedTensor], Noise]:
        """Return the quantized tensors of the model with these methods, and the noise that each adds to outputs and parts."""
        made = self.quantize("int8", (), methods)
        constants = exact_constants(made.main, read_model(self._floating(methods.balance).data).main)
        tensors = quantized_tensors(made.main, constants)

        def measure(outputs: Sequence[Array]) -> Array:
            pieces = [*outputs, *(outputs[at].take(range(low, high + 1), axis) for at, axis, low, high in parts)]
            return _power(pieces)

        try:
            return tensors, measure_noise(made, tensors, self.samples, self.wanted, run_twin, measure, constants)
        except NoTwin:
            return [], Noise(np.zeros((0, 1)), np.zeros(1))

    def _score(self, methods: Methods, goal: float) -> float:
        made = self.quantize("int8", (), methods)
        try:
            return nearness(self._compare(run_twin(float_twin(made))), goal)
        except NoTwin:  # LiteRT has an operator of it in INT8 alone
            return nearness(self.compare(made), goal)

    def _compare(self, run: Callable[[Sequence[Array]], list[Array]]) -> list[OutputAccuracy]:
        found = [run(sample) for sample in self.samples[:_COMPARED]]
        pairs = zip(zip(*self.wanted, strict=True), zip(*found, strict=True), strict=True)
        return [
            compare_arrays(f"output {at}", np.stack(right), np.stack(ours).reshape(np.stack(right).shape))
            for at, (right, ours) in enumerate(pairs)
        ]

    def _layer_moments(self) -> LayerMoments:
        if self._moments is None:
            self._moments = LayerMoments(read_model(self.data).main)
            for sample in self.samples[self.held :]:
                self._moments.add(self._watched.run(sample))
        return self._moments

    def _floating(self, balance: Balance | None) -> _Floating:
        """Return the float model with equalized channels, and the ranges that it has then."""
        if balance not in self._floats:
            model = read_model(self.data)
            peaks = {name: one.peak for name, one in self.seen.items()}
            units = equalize_channels(model.main, peaks, balance) if balance is not None else {}
            seen = {name: one.divide(units[name]) if name in units else one for name, one in self.seen.items()}
            ranges = useful_ranges(model.main, {name: one.range for name, one in seen.items()})
            self._floats[balance] = _Floating(write_model(model) if units else self.data, ranges, units)
        return self._floats[balance]


def _exact_names(graph: Graph, wide: Collection[str]) -> set[str]:
    """Return the tensors that have 16 bits for all that compute and read them: steps enough for whole ranges."""
    narrow = [op for op in graph.operators if not any(graph.tensors[at].name in wide for at in op.outputs)]
    touched = {graph.tensors[at].name for op in narrow for at in (*op.inputs, *op.outputs) if at >= 0}
    return {tensor.name for tensor in graph.tensors} - touched


def scheme_of(activations: str, others: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the quantizer's recipe: weights of 8 bits with a scale per channel, activations of 8 or 16 bits."""
    from ai_edge_quantizer import recipe

    kinds = {"int8": recipe.static_wi8_ai8, "int16": recipe.static_wi8_ai16}
    made: list[dict[str, Any]] = list(kinds[activations]())
    (other,) = kinds["int16" if activations == "int8" else "int8"]()
    # The quantizer looks for a pattern in the names of an operator's outputs.
    return made + [{**other, "regex": f"(^|;){re.escape(name)}(;|$)"} for name in others]


def run_twin(model: Model) -> Callable[[Sequence[Array]], list[Array]]:
    """Return a function that runs a float twin in LiteRT's default kernels; raises `NoTwin` where LiteRT refuses it."""
    from ai_edge_litert.interpreter import Interpreter

    try:
        interpreter = Interpreter(model_content=write_model(model), num_threads=1)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise NoTwin from error
    inputs, outputs = model.main.inputs, model.main.outputs

    def run(sample: Sequence[Array]) -> list[Array]:
        for at, value in zip(inputs, sample, strict=True):
            interpreter.set_tensor(at, value)
        interpreter.invoke()
        return [interpreter.get_tensor(at) for at in outputs]

    return run


def _power(arrays: Sequence[Array]) -> Array:
    return np.array([np.square(one.astype(np.float64)).sum() for one in arrays])


def _to(value: Array, tensor: Tensor) -> Array:
    """Convert a float value to an input's data type."""
    if tensor.quantization is None or tensor.dtype.numpy.kind != "i":
        return value
    scale, zero = tensor.quantization.scalar
    limits = np.iinfo(tensor.dtype.numpy)
    stored: Array = np.clip(np.rint(value / scale) + zero, limits.min, limits.max)
    return stored.astype(tensor.dtype.numpy)


def _from(value: Array, tensor: Tensor) -> Array:
    """Convert an output to float."""
    if tensor.quantization is None or tensor.dtype.numpy.kind != "i":
        return value
    scale, zero = tensor.quantization.scalar
    return np.asarray((value.astype(np.float64) - zero) * scale)
