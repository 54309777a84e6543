"""lstm: UNIDIRECTIONAL_SEQUENCE_LSTM in all its integer forms, over several runs, at 0 LSB; and each refusal."""

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
from openneutron.microcode.abi import by_id
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import refusal

GATES = ("input", "forget", "cell", "output")
RUNS = 4


@dataclass(frozen=True)
class Layer:
    """What an LSTM of a test looks like."""

    batch: int = 1
    steps: int = 5
    inputs: int = 6
    cells: int = 7
    outputs: int = 7
    seed: int = 0
    time_major: bool = False
    coupled: bool = False
    peephole: bool = False
    normalize: bool = False
    project: bool = False
    projection_bias: bool = True
    cell_exponent: int = -11
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    input_zero: int = 3
    output_zero: int = -4
    hidden_zero: int = -4
    cell_scale: float = 0.0  # instead of the power of two
    activation: str = "TANH"

    def model(self) -> bytes:
        """The layer alone, with random weights that keep the gates away from saturation."""
        rng = np.random.default_rng(self.seed)
        g = GraphBuilder()

        def constant(name: str, shape: tuple[int, ...], dtype: DType, scale: float, most: int) -> int:
            data = rng.integers(-most, most + 1, shape)
            return g.tensor(name, shape, dtype, scale, 0, data=data)

        head = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        x = g.tensor("x", (*head, self.inputs), DType.INT8, 1 / 64, self.input_zero)
        y = g.tensor("y", (*head, self.outputs), DType.INT8, 1 / 128, self.output_zero)
        slots = [-1] * 24
        slots[0] = x
        for at, gate in enumerate(GATES):
            if at == 0 and self.coupled:
                continue
            scale = float(rng.uniform(0.002, 0.02))
            slots[1 + at] = constant(f"{gate}_x", (self.cells, self.inputs), DType.INT8, scale, 127)
            slots[5 + at] = constant(f"{gate}_h", (self.cells, self.outputs), DType.INT8, scale * 0.7, 127)
            slots[12 + at] = constant(f"{gate}_b", (self.cells,), DType.INT32, scale / 64, 4000)
            if self.peephole and at != 2:
                slots[9 + (at if at < 2 else 2)] = constant(f"{gate}_p", (self.cells,), DType.INT16, 2e-5, 32767)
            if self.normalize:
                slots[20 + at] = constant(f"{gate}_n", (self.cells,), DType.INT16, 3e-5, 32767)
        if self.project:
            slots[16] = constant("projection", (self.outputs, self.cells), DType.INT8, 0.01, 127)
            if self.projection_bias:
                slots[17] = constant("projection_b", (self.outputs,), DType.INT32, 0.01 / 128, 3000)
        slots[18] = g.state("h", (self.batch, self.outputs), DType.INT8, 1 / 128, self.output_zero)
        cell_scale = self.cell_scale or 2.0**self.cell_exponent
        slots[19] = g.state("c", (self.batch, self.cells), DType.INT16, cell_scale)
        op = g.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM", slots, [y], version=3, fused_activation_function=self.activation,
            cell_clip=self.cell_clip, proj_clip=self.projection_clip, time_major=self.time_major,
        )  # fmt: skip
        for gate in GATES:
            op.intermediates.append(g.tensor(f"{gate}_sum", (1,), DType.INT16, 2.0**-12 * 1.3, 0))
        hidden_zero = self.hidden_zero if self.project else self.output_zero
        op.intermediates.append(g.tensor("hidden", (1,), DType.INT8, 1 / 128, hidden_zero))
        return write_model(g.finish([x], [y]))


def assert_exact(layer: Layer, target: str = "imxrt700") -> None:
    """Several runs, then the same again after a reset."""
    data = layer.model()
    result = convert(data, Options(target=target))
    assert [op.reason for op in result.report.operators if not op.converted] == []
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
def layers(draw: st.DrawFn) -> Layer:
    cells = draw(st.integers(1, 20))
    project = draw(st.booleans())
    outputs = draw(st.integers(1, 20)) if project else cells
    return Layer(
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


@settings(max_examples=40)
@given(layers())
def test_any_layer(layer: Layer) -> None:
    assert_exact(layer)


@pytest.mark.parametrize("target", targets.names())
def test_every_target(target: str) -> None:
    assert_exact(Layer(batch=2, cells=33, outputs=33, inputs=17), target)
    assert_exact(Layer(cells=12, outputs=5, project=True, coupled=True, normalize=True), target)


def test_microcode_and_weights_do_not_grow_with_the_steps() -> None:
    few, many = (convert(Layer(steps=steps).model(), Options(target="imxrt700")).report.totals for steps in (25, 250))
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
    assert reason in refusal(read_model(replace(Layer(), **changes).model()))


def test_the_state_must_have_the_layers_shape() -> None:
    model = read_model(Layer().model())
    graph = model.main
    state = graph.operators[0].inputs[18]
    graph.tensors[state].shape = (1, 3)
    assert "not 7 elements" in refusal(model)


def test_the_kernel_keeps_two_states() -> None:
    assert by_id(31).operands == ("input", "weights", "table", "hidden", "cell", "workspace", "output")
