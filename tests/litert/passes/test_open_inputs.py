"""Inputs of open sizes get those of the calibration data."""

from __future__ import annotations

import numpy as np
import pytest

import openneutron
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Model
from openneutron.litert.passes.open_inputs import size_open_inputs


def open_sound(signature: tuple[int, ...]) -> Model:
    """A sound of any length, of which each pair of numbers becomes three."""
    g = GraphBuilder()
    x = g.tensor("sound", tuple(max(one, 1) for one in signature), DType.FLOAT32)
    rows = g.tensor("rows", (1, 2), DType.FLOAT32)
    g.op("RESHAPE", [x, g.tensor("pairs", (2,), DType.INT32, data=np.array([-1, 2], np.int32))], [rows])
    w = g.tensor("w", (3, 2), DType.FLOAT32, data=np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32))
    y = g.tensor("y", (1, 3), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [rows, w, -1], [y])
    for at, one in ((x, signature), (rows, (-1, 2)), (y, (-1, 3))):
        g.graph.tensors[at].shape_signature = one
    return g.finish([x], [y])


@pytest.mark.parametrize(
    ("signature", "given", "shape"),
    [
        ((-1,), (40,), (40,)),
        ((-1, -1), (1, 40), (1, 40)),
        ((-1, -1), (8, 40), (1, 40)),  # a batch
        ((-1, -1), (40,), (1, 40)),
        ((1, -1), (1, 40), (1, 40)),
        ((1, -1), (2, 40), (1, 1)),  # does not fit: the binding of samples tells it
        ((-1,), (4, 10), (1,)),
        ((-1,), (0,), (1,)),
    ],
)
def test_the_size_of_a_sample_is_taken_where_it_fits(
    signature: tuple[int, ...], given: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    graph = open_sound(signature).main
    changed = graph.tensors[graph.inputs[0]].shape != shape
    assert size_open_inputs(graph, [given]) == changed
    assert graph.tensors[graph.inputs[0]].shape == shape


@pytest.mark.parametrize("signature", [(-1,), (1, -1)], ids=str)
def test_a_sound_of_any_length_is_compiled_for_that_of_its_samples(signature: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    samples = [rng.normal(size=(*signature[:-1], 40)).astype(np.float32) for _ in range(8)]
    program = openneutron.compile(write_model(open_sound(signature)), calibration=samples, quality="plain")
    assert [one.code for one in program.verdicts if not one.delegated] == []
    assert f"is compiled for {list(samples[0].shape)}" in " ".join(program.report.notes)
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 30
    assert program.run(np.zeros(samples[0].shape, np.int8))[0].shape == (20, 3)


def test_a_float_model_without_calibration_says_why_nothing_runs_on_the_npu() -> None:
    report = openneutron.compile(write_model(open_sound((1, -1)))).report
    assert any("the model is in float: give calibration data" in one for one in report.warnings)
