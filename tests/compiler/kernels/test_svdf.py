"""svdf: SVDF with a 16-bit memory, over several runs, at 0 LSB; and each refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.litert import DType
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import refusal
from tests.sampling import examples
from tests.stateful import Svdf

RUNS = 12


def assert_exact(layer: Svdf, target: str = "imxrt700") -> None:
    data = layer.model()
    result = convert(data, Options(target=target))
    assert [op.reason for op in result.report.operators if not op.converted] == []
    prove(result.model, data)
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for run in range(RUNS):
        inputs = random_inputs(reference.inputs, seed=run)
        wanted, got = reference.run(inputs).outputs["y"], compiled.run(inputs).outputs["y"]
        assert np.array_equal(wanted, got), (layer, run, wanted, got)


@examples(30)
@given(
    st.builds(
        Svdf, batch=st.integers(1, 3), inputs=st.integers(1, 20), units=st.integers(1, 12), rank=st.integers(1, 3),
        steps=st.integers(1, 9), seed=st.integers(0, 1 << 30), bias=st.booleans(), input_zero=st.integers(-128, 127),
        output_zero=st.integers(-128, 127),
    )
)  # fmt: skip
def test_any_layer(layer: Svdf) -> None:
    assert_exact(layer)


@pytest.mark.parametrize("target", targets.geometries())
def test_every_target(target: str) -> None:
    assert_exact(Svdf(batch=2, units=33, inputs=40, steps=10), target)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"memory_type": DType.INT8}, "'time' is int8"),
        ({"memory_zero": 5}, "zero point 5"),
        ({"activation": "NONE"}, "the activation is number 0"),
    ],
    ids=["INT8 memory", "zero point", "activation"],
)
def test_refusals(changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(read_model(replace(Svdf(), **changes).model()))
