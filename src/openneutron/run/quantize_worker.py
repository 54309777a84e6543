"""Main function of the quantizing process.

It reads `float.tflite`, `samples.npz` and `request.json` of a folder, writes `quantized.tflite` and `result.json`.

Started by `openneutron.run.quantize`; what it says on stderr is noise but for the last line of a failure.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Tensor
from openneutron.litert.passes.drop_tensors import drop_tensors
from openneutron.litert.passes.equalize_channels import Balance, equalize_channels
from openneutron.litert.passes.last_names import last_names
from openneutron.litert.passes.narrow_operators import narrow_operators
from openneutron.litert.passes.useful_ranges import useful_ranges
from openneutron.litert.passes.widen_operators import widen_operators
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.report.accuracy import lowest_sqnr, nearness
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_arrays import compare_arrays
from openneutron.run.correct_biases import correct_biases
from openneutron.run.methods import BALANCES, Methods
from openneutron.run.runner import LiteRtRunner
from openneutron.run.watch import watch
from openneutron.sandbox.restrictions import Restrictions, restrict

Array = npt.NDArray[Any]
_MEMORY, _FILE = 8 << 30, 1 << 30  # bytes it may take and write; the quantizer holds a model several times
_COMPARED = 16  # samples on which the two models are compared
_FEW = 4  # on these, where only an order of noises is asked for
_LEAST_GAIN_DB = 0.1  # a smaller one is within what other samples would change


def main(folder: Path) -> None:
    """Quantize the model of a folder as its request says, and measure groups of operators where it names some."""
    data = (folder / "float.tflite").read_bytes()
    request = json.loads((folder / "request.json").read_text())
    with np.load(folder / "samples.npz", allow_pickle=False) as stored:
        columns = [stored[name] for name in stored.files]
    quantizing = Quantizing(data, list(zip(*columns, strict=True)))
    methods = Methods.of(request["methods"])
    tried = 0
    if request["goal"] is not None:
        methods, tried = quantizing.search(request["goal"])
    made = quantizing.quantize(request["activations"], request["wide"], methods)
    (folder / "quantized.tflite").write_bytes(made)
    found: dict[str, Any] = {
        "outputs": [dataclasses.asdict(one) for one in quantizing.compare(made, _COMPARED)],
        "made_by": f"ai-edge-quantizer {importlib.metadata.version('ai-edge-quantizer')}",
        "methods": dataclasses.asdict(methods),
        "tried": tried,
    }
    if request["groups"]:
        found["floor"] = quantizing.noise((), methods)
        found["noise"] = [quantizing.noise(group, methods) for group in request["groups"]]
    (folder / "result.json").write_text(json.dumps(found))


class Quantizing:
    """A float model, calibrated once, that is quantized in several ways and compared with itself."""

    def __init__(self, data: bytes, samples: list[tuple[Array, ...]]) -> None:
        self.data, self.samples = data, samples
        self.seen = watch(data, samples)
        exact = LiteRtRunner(data)
        self.wanted = [list(exact.run(sample).outputs.values()) for sample in samples[:_COMPARED]]
        self._floats: dict[Balance | None, Floating] = {}

    def search(self, goal: float) -> tuple[Methods, int]:
        """Return the methods that cost no cycles and come nearest to a goal, and how many were tried."""
        best, highest, tried = Methods(), self._score(Methods(), goal), 0

        def attempt(one: Methods) -> None:
            nonlocal best, highest, tried
            tried += 1
            if (figure := self._score(one, goal)) > highest + _LEAST_GAIN_DB:
                best, highest = one, figure

        attempt(Methods(cut_ranges=True))
        start = best
        for balance in BALANCES:
            attempt(dataclasses.replace(start, balance=balance))
        attempt(dataclasses.replace(best, cut_ranges=not best.cut_ranges))
        attempt(dataclasses.replace(best, correct_bias=True))
        return best, tried

    def _score(self, methods: Methods, goal: float) -> float:
        return nearness(self.compare(self.quantize("int8", (), methods), _COMPARED), goal)

    def quantize(self, activations: str, others: Sequence[str], methods: Methods) -> bytes:
        """Quantize with these activations, and with the other width for operators by the names of their outputs."""
        from ai_edge_quantizer import quantizer

        floating = self._floating(methods.balance)
        model, ranges, names = read_model(floating.data), dict(floating.ranges), list(others)
        if methods.cut_ranges:  # where there are 8 bits; with 16 there are steps enough
            narrow = set(floating.usual) - set(others) if activations == "int8" else set(others) & set(floating.usual)
            ranges |= {name: floating.usual[name] for name in narrow}
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
        if methods.correct_bias:
            correct_biases(result, model, floating.means)
        return write_model(result)

    def _floating(self, balance: Balance | None) -> Floating:
        """Return the float model with equalized channels, and the ranges that it has then."""
        if balance not in self._floats:
            model = read_model(self.data)
            peaks = {name: one.peak for name, one in self.seen.items()}
            units = equalize_channels(model.main, peaks, balance) if balance is not None else {}
            seen = {name: one.divide(units[name]) if name in units else one for name, one in self.seen.items()}
            ranges = useful_ranges(model.main, {name: one.range for name, one in seen.items()})
            usual = useful_ranges(model.main, {name: one.usual_range for name, one in seen.items()})
            for name in last_names(model.main):  # what is cut off an output is seen
                usual.pop(name, None)
            data = write_model(model) if units else self.data
            self._floats[balance] = Floating(data, ranges, usual, {name: one.mean for name, one in seen.items()})
        return self._floats[balance]

    def compare(self, quantized: bytes, count: int) -> list[OutputAccuracy]:
        """Compare each output of a quantized model with the float model's."""
        graph = read_model(quantized).main
        inputs, outputs = ([graph.tensors[at] for at in side] for side in (graph.inputs, graph.outputs))
        ours = LiteRtRunner(quantized)
        pairs: list[tuple[list[Array], list[Array]]] = [([], []) for _ in outputs]
        for sample, wanted in zip(self.samples[:count], self.wanted, strict=False):
            given = [_to(value, tensor) for value, tensor in zip(sample, inputs, strict=True)]
            found = ours.run(given).outputs.values()
            for pair, right, value, tensor in zip(pairs, wanted, found, outputs, strict=True):
                pair[0].append(right)
                pair[1].append(_from(value, tensor))
        return [compare_arrays(f"output {at}", np.stack(a), np.stack(b)) for at, (a, b) in enumerate(pairs)]

    def noise(self, narrow: Sequence[str], methods: Methods) -> list[float]:
        """Return the noise of each output and of its worst part against the signal, with 16 bits in all operators but some."""
        made = self.quantize("int16", narrow, methods)
        compared = self.compare(made, _FEW)
        figures = [lowest_sqnr([dataclasses.replace(one, separate=False)]) for one in compared]
        parts = [
            figure if one.part_sqnr is None else one.part_sqnr for one, figure in zip(compared, figures, strict=True)
        ]
        return [10 ** (-one / 10) for one in (*figures, *parts)]


@dataclasses.dataclass(frozen=True)
class Floating:
    """A float model, the range of each tensor, the usual one of those within, and the means of channels."""

    data: bytes
    ranges: dict[str, tuple[float, float]]
    usual: dict[str, tuple[float, float]]
    means: dict[str, Array]


def scheme_of(activations: str, others: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the quantizer's recipe: weights of 8 bits with a scale per channel, activations of 8 or 16 bits."""
    from ai_edge_quantizer import recipe

    kinds = {"int8": recipe.static_wi8_ai8, "int16": recipe.static_wi8_ai16}
    made: list[dict[str, Any]] = list(kinds[activations]())
    (other,) = kinds["int16" if activations == "int8" else "int8"]()
    # The quantizer looks for a pattern in the names of an operator's outputs.
    return made + [{**other, "regex": f"(^|;){re.escape(name)}(;|$)"} for name in others]


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


if __name__ == "__main__":
    try:
        restrict(Restrictions(_MEMORY, file_bytes=_FILE, writable=(sys.argv[1],)))
        main(Path(sys.argv[1]))
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}", file=sys.stderr)
        sys.exit(1)
