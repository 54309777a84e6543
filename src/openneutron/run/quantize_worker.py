"""Main function of the quantizing process.

It reads `float.tflite`, `samples.npz` and `request.json` of a folder, writes `quantized.tflite` and `result.json`.

Started by `openneutron.run.quantize`; what it says on stderr is noise but for the last line of a failure.
"""

from __future__ import annotations

import copy
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
from openneutron.litert.passes.narrow_operators import narrow_operators
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.report.accuracy import lowest_sqnr
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_arrays import compare_arrays
from openneutron.run.quantize import SIGNATURE
from openneutron.run.runner import LiteRtRunner
from openneutron.sandbox.restrictions import Restrictions, restrict

Array = npt.NDArray[Any]
_MEMORY, _FILE = 8 << 30, 1 << 30  # bytes it may take and write; the quantizer holds a model several times
_COMPARED = 16  # samples on which the two models are compared
_FEW = 4  # on these, where only an order of noises is asked for


def main(folder: Path) -> None:
    """Quantize the model of a folder as its request says, and measure groups of operators where it names some."""
    data = (folder / "float.tflite").read_bytes()
    request = json.loads((folder / "request.json").read_text())
    with np.load(folder / "samples.npz", allow_pickle=False) as stored:
        columns = [stored[name] for name in stored.files]
    quantizing = Quantizing(data, list(zip(*columns, strict=True)))
    made = quantizing.quantize(request["activations"], request["wide"])
    (folder / "quantized.tflite").write_bytes(made)
    found: dict[str, Any] = {
        "outputs": [dataclasses.asdict(one) for one in quantizing.compare(made, _COMPARED)],
        "made_by": f"ai-edge-quantizer {importlib.metadata.version('ai-edge-quantizer')}",
    }
    if request["groups"]:
        found["floor"] = quantizing.noise("int16", ())
        found["noise"] = [quantizing.noise("int16", group) for group in request["groups"]]
    (folder / "result.json").write_text(json.dumps(found))


class Quantizing:
    """A float model, calibrated once, that is quantized in several ways and compared with itself."""

    def __init__(self, data: bytes, samples: list[tuple[Array, ...]]) -> None:
        from ai_edge_quantizer import calibrator, recipe_manager
        from ai_edge_quantizer.utils import qsv_utils

        self.data, self.samples = data, samples
        names = [f"input_{at}" for at in range(len(samples[0]))]
        chosen = recipe_manager.RecipeManager()
        chosen.load_quantization_recipe(scheme_of("int8"))
        # Its default, a moving average, forgets all but the first samples when there are few, and cuts their values off.
        watch = calibrator.Calibrator(bytearray(data), num_threads=1, qsv_update_func=qsv_utils.min_max_update)
        watch.calibrate({SIGNATURE: [dict(zip(names, sample, strict=True)) for sample in samples]}, chosen)
        self.ranges = watch.get_model_qsvs()
        exact = LiteRtRunner(data)
        self.wanted = [list(exact.run(sample).outputs.values()) for sample in samples[:_COMPARED]]

    def quantize(self, activations: str, others: Sequence[str] = ()) -> bytes:
        """Quantize with these activations, and with the other width for operators by the names of their outputs."""
        from ai_edge_quantizer import quantizer

        made = quantizer.Quantizer(bytearray(self.data), scheme_of(activations, others)).quantize(
            copy.deepcopy(self.ranges), enable_progress_report=False, enable_progress_bar=False
        )
        return self._with_narrow_operators(bytes(made.quantized_model))

    def _with_narrow_operators(self, quantized: bytes) -> bytes:
        """Give operators that the quantizer does not know, as PRELU, their INT8 form."""
        model = read_model(quantized)
        ranges = {
            name: (float(np.min(one["min"])), float(np.max(one["max"])))
            for name, one in self.ranges.items()
            if "min" in one
        }
        if not narrow_operators(model.main, ranges):
            return quantized
        drop_tensors(model)
        return write_model(model)

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

    def noise(self, activations: str, others: Sequence[str]) -> list[float]:
        """Return the noise of each output against its signal; operators in `others` have the other bit width."""
        return [10 ** (-lowest_sqnr([one]) / 10) for one in self.compare(self.quantize(activations, others), _FEW)]


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
