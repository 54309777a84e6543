"""From ONNX to the NPU: export a network, quantize it with onnxruntime, compile both forms, compare with onnxruntime.

python examples/onnx.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

# A script's own folder comes first on the path, where this file would shadow the package `onnx`.
sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import openneutron  # noqa: E402
from openneutron import zoo  # noqa: E402
from openneutron.onnx.reference import run_reference  # noqa: E402
from openneutron.terminal.quiet import settle  # noqa: E402


def quantized(model: Path, samples: list[Any]) -> Path:
    """Return the model with QuantizeLinear and DequantizeLinear nodes, as onnxruntime writes them."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest = iter([{"images": one[0].numpy()} for one in samples])

        def get_next(self) -> dict[str, Any] | None:
            return next(self.rest, None)

    target = model.with_name("quantized.onnx")
    quantize_static(
        model, target, Reader(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8, per_channel=True,
    )  # fmt: skip
    return target


def main() -> None:
    settle()  # torch's exporter and onnxruntime's quantizer announce missing parts; `-v` shows them
    network = zoo.load("cifarnet")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "cifarnet.onnx"
        torch.onnx.export(
            network.model.eval(), network.example_inputs, model, dynamo=True, external_data=False, verbose=False
        )
        samples = network.calibration[:32]
        image = network.calibration[-1][0]
        forms = {
            "float, calibrated here": openneutron.compile(model, calibration=samples),
            "quantized by onnxruntime": openneutron.compile(quantized(model, samples)),
        }
        for name, program in forms.items():
            wanted = next(iter(run_reference(str(model), [image.numpy()]).values()))
            (got,) = program.run(image)
            totals = program.report.totals
            apart = float(np.abs(got.numpy() - wanted).max())
            print(f"{name}: {totals.cycles:,} cycles, {totals.neutron_graphs} NeutronGraph, {apart:.3f} from float")


if __name__ == "__main__":
    main()
