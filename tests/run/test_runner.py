from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.microcode.graph_op import is_graph_op
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests import tiny
from tests.litert.samples import RUNNABLE
from tests.litert.samples import run as reference_run


@pytest.mark.parametrize("make", [tiny.convnet, tiny.sandwich], ids=["one graph", "graphs around the CPU"])
def test_a_converted_model_gives_the_bits_of_its_source(make) -> None:
    source = make()
    result = convert(source, Options())
    ours, reference = LiteRtRunner(result.model), LiteRtRunner(source)
    assert ours.neutron_graphs == result.report.totals.neutron_graphs > 0
    assert reference.neutron_graphs == 0
    for seed in range(10):
        inputs = random_inputs(reference.inputs, seed=seed)
        got, want = ours.run(inputs), reference.run(inputs)
        assert list(got.outputs) == list(want.outputs)
        assert all(np.array_equal(got.outputs[name], want.outputs[name]) for name in want.outputs)
        assert (got.cycles, want.cycles) == (result.report.totals.cycles, 0)


def test_scalars_stay_scalars() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (), DType.INT8, scale=0.1, zero_point=5) for name in "xy")
    g.op("ADD", [x, x], [y])
    source = write_model(g.finish([x], [y]))
    converted = convert(source, Options()).model
    for value in (-128, 3, 127):
        (got,), (want,) = (
            LiteRtRunner(m).run([np.array(value, np.int8)]).outputs.values() for m in (converted, source)
        )
        assert got.shape == want.shape == () and got == want


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_model_without_graphs_is_the_reference_itself(name: str) -> None:
    data = write_model(RUNNABLE[name]())
    runner = LiteRtRunner(data)
    rng = np.random.default_rng(0)
    inputs = []
    for tensor in runner.inputs:
        kind = tensor.dtype.numpy
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            inputs.append(rng.integers(limits.min, limits.max + 1, tensor.shape).astype(kind))
        else:
            inputs.append(rng.standard_normal(tensor.shape).astype(kind))
    for got, want in zip(runner.run(inputs).outputs.values(), reference_run(data), strict=True):
        assert np.array_equal(got, want)


def elu_between_adds() -> bytes:
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.INT8, scale=0.05, zero_point=1)
    a, b, y = (g.tensor(name, (1, 6), DType.INT8, scale=0.1, zero_point=-4) for name in "aby")
    g.op("ADD", [x, x], [a])
    g.op("ELU", [a], [b])
    g.op("ADD", [a, b], [y])
    return write_model(g.finish([x], [y, b]))


def test_an_operator_without_reference_kernel_runs_in_its_only_one() -> None:
    source = elu_between_adds()
    converted = convert(source, Options()).model
    inputs = random_inputs(LiteRtRunner(source).inputs, seed=1)
    ours, reference = LiteRtRunner(converted).run(inputs), LiteRtRunner(source).run(inputs)
    assert all(np.array_equal(ours.outputs[name], reference.outputs[name]) for name in ("y", "b"))


def test_inputs_are_taken_by_name_too() -> None:
    runner = LiteRtRunner(tiny.sandwich())
    a, b = random_inputs(runner.inputs, seed=2)
    by_name, by_position = runner.run({"b": b, "a": a}), runner.run([a, b])
    assert all(np.array_equal(by_name.outputs[name], by_position.outputs[name]) for name in ("out", "wave"))


def test_an_output_that_nothing_makes_is_refused() -> None:
    """The NeutronGraph's output and its scratch are exchanged: the graph is in order, but no microcode writes its output."""
    model = read_model(convert(tiny.convnet(), Options()).model)
    op = next(one for one in model.main.operators if is_graph_op(one))
    op.outputs.reverse()
    with pytest.raises(
        FormatError, match=r"a\.tflite, operator \d+ \(NeutronGraph\): output 0 of the model.*nothing makes it"
    ):
        LiteRtRunner(write_model(model), source="a.tflite")


def test_tensors_that_are_not_what_the_microcode_writes_are_refused() -> None:
    model = read_model(convert(tiny.convnet(), Options()).model)
    op = next(one for one in model.main.operators if is_graph_op(one))
    tensor = model.main.tensors[op.outputs[0]]
    model.main.tensors[op.outputs[0]] = replace(tensor, shape=(1, 7))
    with pytest.raises(FormatError, match=r"output 0, tensor \d+ .*has 7 bytes of int8, its microcode 5 of int8"):
        LiteRtRunner(write_model(model))
