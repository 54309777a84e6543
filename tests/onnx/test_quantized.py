"""Quantized ONNX models: what onnxruntime's quantize_static writes agrees with onnxruntime to one step."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import openneutron
from openneutron.errors import OptionError
from openneutron.onnx import load
from openneutron.onnx.reference import output_scales, run_reference
from tests.onnx.models import convnet, model, node

FORMS = {
    "QDQ, UINT8": ("QDQ", "QUInt8", False),
    "QDQ, INT8 per channel": ("QDQ", "QInt8", True),
    "QOperator, UINT8": ("QOperator", "QUInt8", False),
    "QOperator, INT8 per channel": ("QOperator", "QInt8", True),
}


def images(count: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(1, 3, 16, 16)).astype(np.float32) for _ in range(count)]


def quantized(folder: Path, form: str, activation: str, per_channel: bool) -> Path:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.rest = iter([{"image": one} for one in images(8)])

        def get_next(self) -> Any:
            return next(self.rest, None)

    source, target = folder / "float.onnx", folder / "quantized.onnx"
    source.write_bytes(convnet().SerializeToString())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_static(
            source, target, Reader(), quant_format=getattr(QuantFormat, form),
            activation_type=getattr(QuantType, activation), weight_type=QuantType.QInt8, per_channel=per_channel,
        )  # fmt: skip
    return target


@pytest.mark.parametrize("name", FORMS)
def test_the_imported_model_is_within_a_step_of_onnxruntime(name: str, tmp_path: Path) -> None:
    path = quantized(tmp_path, *FORMS[name])
    imported = load(path)
    assert imported.quantized
    (scale,) = output_scales(imported.program)
    for image in images(4):
        (wanted,) = run_reference(str(path), [image]).values()
        (got,) = imported.program.module()(torch.from_numpy(image))
        assert np.abs(got.numpy() - wanted).max() <= 1.01 * scale


def test_a_compiled_one_is_one_partition_with_its_own_scales(tmp_path: Path) -> None:
    path = quantized(tmp_path, *FORMS["QDQ, UINT8"])
    program = openneutron.compile(path, optimize="fast")
    assert program.report.totals.neutron_graphs == 1
    assert {one.code for one in program.report.nodes if not one.delegated} == {"border"}
    (scale,) = output_scales(load(path).program)
    (image,) = images(1)
    (wanted,) = run_reference(str(path), [image]).values()
    (got,) = program.run(torch.from_numpy(image))
    assert np.abs(got.numpy() - wanted).max() <= 1.01 * scale


@pytest.mark.parametrize("name", ["QDQ, UINT8", "QDQ, INT8 per channel"])
def test_calibration_data_quantize_it_anew(name: str, tmp_path: Path) -> None:
    path = quantized(tmp_path, *FORMS[name])
    assert not load(path, anew=True).quantized
    samples = [(torch.from_numpy(image),) for image in images(8)]
    program = openneutron.compile(path, calibration=samples, optimize="fast", quality="plain")
    assert {one.code for one in program.report.nodes if not one.delegated} == {"border"}
    assert any("it is quantized anew" in one for one in program.report.notes)
    plain = convnet().SerializeToString()
    wanted = np.stack([next(iter(run_reference(plain, [image]).values())) for image in images(4)])
    got = np.stack([program.run(*one)[0].numpy() for one in samples[:4]])
    assert 10 * np.log10(np.square(wanted).sum() / np.square(wanted - got).sum()) > 20


def test_operators_on_stored_integers_keep_their_scales(tmp_path: Path) -> None:
    path = quantized(tmp_path, *FORMS["QOperator, UINT8"])
    with pytest.raises(
        OptionError, match=r"quantized already.*leave calibration out: its operators on stored integers"
    ):
        openneutron.compile(path, calibration=[(torch.from_numpy(one),) for one in images(1)])


def test_what_is_quantized_in_parts_alone_says_how_to_get_the_rest_onto_the_npu() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Conv", ["d", "w"], ["c"]), node("QuantizeLinear", ["c", "s", "z"], ["r"]),
        node("DequantizeLinear", ["r", "s", "z"], ["f"]), node("Softplus", ["f"], ["p"]), node("Div", ["p", "x"], ["y"]),
    ]  # fmt: skip
    stored = {"s": np.float32(0.05), "z": np.uint8(0), "w": np.random.default_rng(0).normal(size=(3, 3, 1, 1))}
    stored["w"] = stored["w"].astype(np.float32)
    made = model(nodes, {"x": [1, 3, 4, 4]}, ["y"], stored).SerializeToString()
    left = {one.operator: one for one in openneutron.compile(made).verdicts if not one.delegated}
    assert left["aten.div.Tensor"].hint == "give calibration data, so that this part is quantized too"
    samples = [(torch.rand(1, 3, 4, 4) + 0.5,) for _ in range(8)]
    program = openneutron.compile(made, calibration=samples, quality="plain")
    assert {one.code for one in program.verdicts if not one.delegated} == {"border"}
    x = samples[0][0]
    (wanted,) = run_reference(made, [x.numpy()]).values()  # what is below 0 is stored as 0: a Relu was left out
    assert np.abs(program.run(x)[0].numpy() - wanted).max() < 0.1


# Operators between a quantize and a dequantize, on stored integers: attributes and further inputs.
STORED: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "pad with a number": ("Pad", {}, [np.array([0, 0, 1, 0, 0, 0, 2, 1]), 7]),
    "pad with zero": ("Pad", {}, [np.array([0, 0, 1, 0, 0, 0, 2, 1])]),
    "resize": ("Resize", {"mode": "nearest"}, [np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)]),
    "largest": ("ReduceMax", {"keepdims": 1}, [np.array([2, 3])]),
    "transpose": ("Transpose", {"perm": [0, 2, 3, 1]}, []),
}


@pytest.mark.parametrize("dtype", [np.int8, np.uint8], ids=["INT8", "UINT8"])
@pytest.mark.parametrize("name", STORED)
def test_operators_on_stored_integers_run_on_the_npu(name: str, dtype: type) -> None:
    op, attributes, given = STORED[name]
    more = {f"i{at}": dtype(one) if isinstance(one, int) else one for at, one in enumerate(given)}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]), node(op, ["q", *more], ["m"], **attributes),
        node("DequantizeLinear", ["m", "s", "z"], ["d"]), node("Relu", ["d"], ["r"]),
        node("QuantizeLinear", ["r", "s", "z"], ["o"]), node("DequantizeLinear", ["o", "s", "z"], ["y"]),
    ]  # fmt: skip
    made = model(nodes, {"x": [1, 2, 3, 4]}, ["y"], {"s": np.float32(0.05), "z": dtype(11), **more})
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(np.float32)
    program = openneutron.compile(made.SerializeToString(), optimize="fast")
    assert {one.code for one in program.report.nodes if not one.delegated} == {"border"}
    (wanted,) = run_reference(made.SerializeToString(), [x]).values()
    (got,) = program.run(torch.from_numpy(x))
    assert np.array_equal(got.numpy(), wanted)
