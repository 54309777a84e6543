"""svdf: SVDF with a 16-bit memory, over several runs, at 0 LSB; and each refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import refusal

RUNS = 12


@dataclass(frozen=True)
class Layer:
    """What an SVDF of a test looks like."""

    batch: int = 1
    inputs: int = 6
    units: int = 5
    rank: int = 2
    steps: int = 4
    seed: int = 0
    bias: bool = True
    input_zero: int = 3
    output_zero: int = -7
    activation: str = "RELU"
    memory_type: DType = DType.INT16
    memory_zero: int = 0

    def model(self) -> bytes:
        rng = np.random.default_rng(self.seed)
        g = GraphBuilder()
        filters = self.units * self.rank
        x = g.tensor("x", (self.batch, self.inputs), DType.INT8, 1 / 64, self.input_zero)
        y = g.tensor("y", (self.batch, self.units), DType.INT8, 0.05, self.output_zero)
        feature = g.tensor(
            "feature", (filters, self.inputs), DType.INT8, 0.01, 0, data=rng.integers(-127, 128, (filters, self.inputs))
        )
        most = 127 if self.memory_type is DType.INT8 else 32767
        time = g.tensor(
            "time", (filters, self.steps), self.memory_type, 1 / most, 0,
            data=rng.integers(-most, most + 1, (filters, self.steps)),
        )  # fmt: skip
        bias = -1
        if self.bias:
            bias = g.tensor(
                "bias", (self.units,), DType.INT32, 2e-9, 0, data=rng.integers(-1 << 24, 1 << 24, self.units)
            )
        memory = g.state("memory", (self.batch, filters * self.steps), self.memory_type, 2e-4, self.memory_zero)
        g.op(
            "SVDF", [x, feature, time, bias, memory], [y], version=3, rank=self.rank,
            fused_activation_function=self.activation,
        )  # fmt: skip
        return write_model(g.finish([x], [y]))


def assert_exact(layer: Layer, target: str = "imxrt700") -> None:
    data = layer.model()
    result = convert(data, Options(target=target))
    assert [op.reason for op in result.report.operators if not op.converted] == []
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for run in range(RUNS):
        inputs = random_inputs(reference.inputs, seed=run)
        wanted, got = reference.run(inputs).outputs["y"], compiled.run(inputs).outputs["y"]
        assert np.array_equal(wanted, got), (layer, run, wanted, got)


@settings(max_examples=30)
@given(
    st.builds(
        Layer, batch=st.integers(1, 3), inputs=st.integers(1, 20), units=st.integers(1, 12), rank=st.integers(1, 3),
        steps=st.integers(1, 9), seed=st.integers(0, 1 << 30), bias=st.booleans(), input_zero=st.integers(-128, 127),
        output_zero=st.integers(-128, 127),
    )
)  # fmt: skip
def test_any_layer(layer: Layer) -> None:
    assert_exact(layer)


@pytest.mark.parametrize("target", targets.names())
def test_every_target(target: str) -> None:
    assert_exact(Layer(batch=2, units=33, inputs=40, steps=10), target)


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
    assert reason in refusal(read_model(replace(Layer(), **changes).model()))
