"""lstm: UNIDIRECTIONAL_SEQUENCE_LSTM in all its integer forms, over several runs, at 0 LSB; and each refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.certify.prove import prove
from openneutron.convert import convert
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.microcode.abi import by_id
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import refusal
from tests.sampling import examples
from tests.stateful import Lstm

RUNS = 4


def assert_exact(layer: Lstm, target: str = "imxrt700") -> None:
    """Several runs, then the same again after a reset."""
    data = layer.model()
    result = convert(data, Options(target=target))
    assert [op.reason for op in result.report.operators if not op.converted] == []
    prove(result.model, data)
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    for run in range(RUNS):
        inputs = random_inputs(reference.inputs, seed=run)
        wanted, got = reference.run(inputs).outputs["y"], compiled.run(inputs).outputs["y"]
        assert np.array_equal(wanted, got), (layer, run)
    compiled.reset()
    reference.reset()
    inputs = random_inputs(reference.inputs, seed=1)
    assert np.array_equal(reference.run(inputs).outputs["y"], compiled.run(inputs).outputs["y"])


@st.composite
def layers(draw: st.DrawFn) -> Lstm:
    cells = draw(st.integers(1, 20))
    project = draw(st.booleans())
    outputs = draw(st.integers(1, 20)) if project else cells
    return Lstm(
        batch=draw(st.integers(1, 3)),
        steps=draw(st.integers(1, 9)),
        inputs=draw(st.integers(1, 20)),
        cells=cells,
        outputs=outputs,
        seed=draw(st.integers(0, 1 << 30)),
        time_major=draw(st.booleans()),
        coupled=draw(st.booleans()),
        peephole=draw(st.booleans()) and outputs == cells,
        normalize=draw(st.booleans()),
        project=project,
        projection_bias=draw(st.booleans()),
        cell_exponent=draw(st.integers(-15, -9)),
        cell_clip=draw(st.sampled_from([0.0, 0.0, 0.5, 1.3])),
        projection_clip=draw(st.sampled_from([0.0, 0.0, 0.4])),
        input_zero=draw(st.integers(-128, 127)),
        output_zero=draw(st.integers(-20, 20)),
        hidden_zero=draw(st.integers(-20, 20)),
    )


@examples(40)
@given(layers())
def test_any_layer(layer: Lstm) -> None:
    assert_exact(layer)


@pytest.mark.parametrize("target", targets.geometries())
def test_every_target(target: str) -> None:
    assert_exact(Lstm(batch=2, cells=33, outputs=33, inputs=17), target)
    assert_exact(Lstm(cells=12, outputs=5, project=True, coupled=True, normalize=True), target)


def test_microcode_and_weights_do_not_grow_with_the_steps() -> None:
    few, many = (convert(Lstm(steps=steps).model(), Options(target="imxrt700")).report.totals for steps in (25, 250))
    assert (few.microcode_bytes, few.weight_bytes) == (many.microcode_bytes, many.weight_bytes)
    assert 9 < many.cycles / few.cycles < 11


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cell_scale": 0.0005}, "scale 0.0005"),
        ({"cell_exponent": -8}, "scale 0.0039"),
        ({"activation": "RELU"}, "the activation is number 1"),
    ],
    ids=["no power of two", "too coarse", "activation"],
)
def test_refusals(changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(read_model(replace(Lstm(), **changes).model()))


def test_the_state_must_have_the_layers_shape() -> None:
    model = read_model(Lstm().model())
    graph = model.main
    state = graph.operators[0].inputs[18]
    graph.tensors[state].shape = (1, 3)
    assert "not 7 elements" in refusal(model)


def test_the_kernel_keeps_two_states() -> None:
    assert by_id(31).operands == ("input", "weights", "table", "hidden", "cell", "workspace", "output")
