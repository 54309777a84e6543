"""Main function of the quantizing process.

It reads `float.tflite` and `samples.npz` of a folder, writes `quantized.tflite` and `result.json`.

Started by `openneutron.run.quantize`; what it says on stderr is noise but for the last line of a failure.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.litert.graph import Tensor
from openneutron.litert.read import read_model
from openneutron.report.model import OutputAccuracy
from openneutron.run.compare_arrays import compare_arrays
from openneutron.run.quantize import SIGNATURE
from openneutron.run.runner import LiteRtRunner
from openneutron.sandbox.restrictions import Restrictions, restrict

Array = npt.NDArray[Any]
_MEMORY, _FILE = 8 << 30, 1 << 30  # bytes it may take and write; the quantizer holds a model several times
_COMPARED = 4  # samples on which the two models are compared: enough to tell 10 dB from 20


def main(folder: Path, activations: str) -> None:
    """Quantize the model of a folder."""
    from ai_edge_quantizer import calibrator, quantizer, recipe, recipe_manager
    from ai_edge_quantizer.utils import qsv_utils

    data = (folder / "float.tflite").read_bytes()
    with np.load(folder / "samples.npz", allow_pickle=False) as stored:
        columns = [stored[name] for name in stored.files]
    samples = list(zip(*columns, strict=True))
    scheme = recipe.static_wi8_ai16() if activations == "int16" else recipe.static_wi8_ai8()
    names = [f"input_{at}" for at in range(len(columns))]
    given = [dict(zip(names, sample, strict=True)) for sample in samples]
    chosen = recipe_manager.RecipeManager()
    chosen.load_quantization_recipe(scheme)
    # Its default, a moving average, forgets all but the first samples when there are few, and cuts their values off.
    watch = calibrator.Calibrator(bytearray(data), num_threads=1, qsv_update_func=qsv_utils.min_max_update)
    watch.calibrate({SIGNATURE: given}, chosen)
    made = quantizer.Quantizer(bytearray(data), scheme).quantize(
        watch.get_model_qsvs(), enable_progress_report=False, enable_progress_bar=False
    )
    made = bytes(made.quantized_model)
    (folder / "quantized.tflite").write_bytes(made)
    found = {
        "outputs": [dataclasses.asdict(one) for one in compare(data, made, samples[:_COMPARED])],
        "made_by": f"ai-edge-quantizer {importlib.metadata.version('ai-edge-quantizer')}",
    }
    (folder / "result.json").write_text(json.dumps(found))


def compare(float_model: bytes, quantized: bytes, samples: list[tuple[Array, ...]]) -> list[OutputAccuracy]:
    """Compare each output of the quantized model with that of the original float model."""
    tensors = read_model(quantized).main
    inputs = [tensors.tensors[at] for at in tensors.inputs]
    outputs = [tensors.tensors[at] for at in tensors.outputs]
    exact, ours = LiteRtRunner(float_model), LiteRtRunner(quantized)
    pairs: list[tuple[list[Array], list[Array]]] = [([], []) for _ in outputs]
    for sample in samples:
        wanted = exact.run(sample).outputs.values()
        given = [_to(value, tensor) for value, tensor in zip(sample, inputs, strict=True)]
        found = ours.run(given).outputs.values()
        for pair, right, value, tensor in zip(pairs, wanted, found, outputs, strict=True):
            pair[0].append(right)
            pair[1].append(_from(value, tensor))
    return [compare_arrays(f"output {at}", np.stack(a), np.stack(b)) for at, (a, b) in enumerate(pairs)]


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
        main(Path(sys.argv[1]), sys.argv[2])
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}", file=sys.stderr)
        sys.exit(1)
