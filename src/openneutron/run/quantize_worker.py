"""The process that quantizes: reads `float.tflite` and `samples.npz` of a folder, writes `quantized.tflite` and `told.json`.

Started by `openneutron.run.quantize`; what it says on stderr is noise but for the last line of a failure.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openneutron.isolate.cage import Cage, enter
from openneutron.litert.graph import Tensor
from openneutron.litert.read import read_model
from openneutron.run.quantize import SIGNATURE
from openneutron.run.runner import LiteRtRunner

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
    told = {
        "sqnr": compare(data, made, samples[:_COMPARED]),
        "made_by": f"ai-edge-quantizer {importlib.metadata.version('ai-edge-quantizer')}",
    }
    (folder / "told.json").write_text(json.dumps(told))


def compare(float_model: bytes, quantized: bytes, samples: list[tuple[Array, ...]]) -> list[float]:
    """SQNR of each output against the float model, in decibels; equal ones have 100."""
    tensors = read_model(quantized).main
    inputs = [tensors.tensors[at] for at in tensors.inputs]
    outputs = [tensors.tensors[at] for at in tensors.outputs]
    exact, ours = LiteRtRunner(float_model), LiteRtRunner(quantized)
    power, noise = np.zeros(len(outputs)), np.zeros(len(outputs))
    for sample in samples:
        wanted = exact.run(sample).outputs.values()
        given = [_to(value, tensor) for value, tensor in zip(sample, inputs, strict=True)]
        found = ours.run(given).outputs.values()
        for at, (right, value, tensor) in enumerate(zip(wanted, found, outputs, strict=True)):
            power[at] += float(np.square(right, dtype=np.float64).sum())
            noise[at] += float(np.square(right - _from(value, tensor), dtype=np.float64).sum())
    return [10 * math.log10(p / n) if p and n else 100.0 for p, n in zip(power, noise, strict=True)]


def _to(value: Array, tensor: Tensor) -> Array:
    """A float value as an input takes it."""
    if tensor.quantization is None or tensor.dtype.numpy.kind != "i":
        return value
    scale, zero = tensor.quantization.scalar
    limits = np.iinfo(tensor.dtype.numpy)
    stored: Array = np.clip(np.rint(value / scale) + zero, limits.min, limits.max)
    return stored.astype(tensor.dtype.numpy)


def _from(value: Array, tensor: Tensor) -> Array:
    """An output as a float value."""
    if tensor.quantization is None or tensor.dtype.numpy.kind != "i":
        return value
    scale, zero = tensor.quantization.scalar
    return np.asarray((value.astype(np.float64) - zero) * scale)


if __name__ == "__main__":
    try:
        enter(Cage(_MEMORY, file_bytes=_FILE, writable=(sys.argv[1],)))
        main(Path(sys.argv[1]), sys.argv[2])
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}", file=sys.stderr)
        sys.exit(1)
