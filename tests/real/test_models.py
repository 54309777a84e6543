"""Real models from elsewhere: `make test-real MODELS=folder [KEYWORDS=file.npz]`. They convert, run and agree at 0 LSB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.errors import FormatError
from openneutron.litert.graph import DType
from openneutron.litert.read import read_model
from openneutron.options import Options
from openneutron.result import Result
from openneutron.run.runner import LiteRtRunner, random_inputs

pytestmark = pytest.mark.real

INPUTS = 3  # random inputs per model: the reference kernels are slow on large ones
# These only change between float and INT8 at the ends of a model.
_AT_THE_ENDS = {"QUANTIZE", "DEQUANTIZE"}


def _convert(path: Path, target: str, **options: object) -> Result:
    return convert(path.read_bytes(), Options(target=target, source=path.name, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
def test_converted_model_agrees_with_the_reference(source_model: Path, target: str) -> None:
    result = _convert(source_model, target)
    reference, ours = LiteRtRunner(source_model.read_bytes()), LiteRtRunner(result.model, source=source_model.name)
    cycles = set()
    for seed in range(INPUTS):
        inputs = random_inputs(reference.inputs, seed=seed)
        wanted, got = reference.run(inputs), ours.run(inputs)
        assert list(wanted.outputs) == list(got.outputs)
        for name, value in wanted.outputs.items():
            assert value.dtype == got.outputs[name].dtype and np.array_equal(value, got.outputs[name]), name
        cycles.add(got.cycles)
    assert cycles == {result.report.totals.cycles}


def test_everything_that_is_quantized_is_converted(source_model: Path) -> None:
    report = _convert(source_model, "imxrt700").report
    graph = read_model(source_model.read_bytes()).main
    for op in report.operators:
        tensors = [
            graph.tensors[t] for t in (*graph.operators[op.index].inputs, *graph.operators[op.index].outputs) if t >= 0
        ]
        floats = any(t.dtype is DType.FLOAT32 for t in tensors)
        assert op.converted or (floats and op.code in _AT_THE_ENDS), f"{op.code}: {op.reason}"
    assert report.totals.neutron_graphs == 1


@pytest.mark.parametrize("target", ["imxrt700", "mcxn94x", "imx95"])
def test_the_file_is_proved_by_the_independent_checker(source_model: Path, target: str) -> None:
    result = _convert(source_model, target)
    assert prove(result.model, source_model.read_bytes()).graphs == result.report.totals.neutron_graphs


def test_same_input_same_bytes(source_model: Path) -> None:
    assert _convert(source_model, "imxrt700").model == _convert(source_model, "imxrt700").model


def test_a_foreign_conversion_is_recognised_and_refused(converted_model: Path) -> None:
    with pytest.raises(FormatError, match="made by NXP's converter"):
        LiteRtRunner(converted_model.read_bytes(), source=converted_model.name)


def test_keyword_accuracy_is_the_references(keyword_case: tuple[Path, Path]) -> None:
    """Every labelled input gives the reference's bits, hence its accuracy."""
    model, labelled = keyword_case
    with np.load(labelled) as file:
        x, y = file["x"], file["y"]
    data = model.read_bytes()
    reference, ours = LiteRtRunner(data), LiteRtRunner(convert(data, Options()).model)
    right = {"reference": 0, "ours": 0}
    for features, label in zip(x, y, strict=True):
        inputs = [features.reshape(reference.inputs[0].shape).astype(np.int8)]
        (wanted,), (got,) = (runner.run(inputs).outputs.values() for runner in (reference, ours))
        assert np.array_equal(wanted, got)
        right["reference"] += int(wanted.argmax() == label)
        right["ours"] += int(got.argmax() == label)
    print(f"{right['ours']} of {len(y)} right, the reference {right['reference']}")
    assert right["ours"] == right["reference"] > len(y) // 2
