from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import FormatError, OptionError, RuntimeFailure, UnsupportedError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.litert.graph import Model, Operator, Tensor
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, bind_inputs, random_inputs
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


def tiled(version: int) -> bytes:
    g = GraphBuilder()
    x = g.tensor("x", (1, 3), DType.INT8, scale=0.05, zero_point=1)
    times = g.tensor("times", (2,), DType.INT32, data=[2, 2])
    y = g.tensor("y", (2, 6), DType.INT8, scale=0.05, zero_point=1)
    g.op("TILE", [x, times], [y], version=version)
    return write_model(g.finish([x], [y]))


def test_a_version_newer_than_the_reference_kernels_runs_as_theirs() -> None:
    x = np.array([[1, 2, 3]], np.int8)
    assert np.array_equal(LiteRtRunner(tiled(3)).run([x]).outputs["y"], np.tile(x, (2, 2)))
    assert np.array_equal(LiteRtRunner(convert(tiled(3), Options()).model).run([x]).outputs["y"], np.tile(x, (2, 2)))


def test_a_version_that_nobody_has_is_refused_at_once() -> None:
    with pytest.raises(RuntimeFailure, match=r"refused the model.*TILE.*2147483647"):
        LiteRtRunner(tiled(2**31 - 1)).run([np.array([[1, 2, 3]], np.int8)])


@pytest.mark.parametrize(
    ("code", "scale", "message"),
    [
        ("ADD", 1e-9, "operator 1 .ADD.: LiteRT's kernel would abort: its output scale 1e-09 is too fine"),
        ("SUB", 1e-9, "too fine"),
        ("SQUARED_DIFFERENCE", 1e-9, "too fine"),
    ],
)
def test_what_would_end_the_process_is_an_error(code: str, scale: float, message: str) -> None:
    g = GraphBuilder()
    x, a = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=0) for name in "xa")
    y = g.tensor("y", (1, 4), DType.INT8, scale=scale, zero_point=0)
    g.op("RELU", [x], [a])
    g.op(code, [a, a], [y])
    data = write_model(g.finish([x], [y]))
    for model in (data, convert(data, Options()).model):
        with pytest.raises(RuntimeFailure, match=message):
            LiteRtRunner(model)


def test_inputs_are_taken_by_name_too() -> None:
    runner = LiteRtRunner(tiny.sandwich())
    a, b = random_inputs(runner.inputs, seed=2)
    by_name, by_position = runner.run({"b": b, "a": a}), runner.run([a, b])
    assert all(np.array_equal(by_name.outputs[name], by_position.outputs[name]) for name in ("out", "wave"))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "0 inputs given, the model has 2.*a, b"),
        ({"a": np.zeros(1)}, "the inputs given are a.*2: a, b"),
        (
            [np.zeros((1, 4, 4, 2), np.int8), np.zeros((1, 4, 4, 2))],
            r"input 'b' is float64.*must be int8.*value / 0.05",
        ),
        ([np.zeros((1, 4, 4, 2), np.int8), np.zeros((4, 4, 2), np.int8)], r"input 'b' is int8 \[4, 4, 2\]"),
    ],
    ids=["too few", "names", "type", "shape"],
)
def test_inputs_that_do_not_fit_are_named(inputs, message: str) -> None:
    with pytest.raises(OptionError, match=f"m.tflite: {message}"):
        bind_inputs(LiteRtRunner(tiny.sandwich()).inputs, inputs, source="m.tflite")


def test_random_inputs_are_seeded_and_use_the_whole_range() -> None:
    tensors = [Tensor("a", (4000,), DType.INT8), Tensor("b", (50,), DType.FLOAT32), Tensor("c", (50,), DType.BOOL)]
    one, two, other = (random_inputs(tensors, seed=seed) for seed in (5, 5, 6))
    assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert (one[0].min(), one[0].max()) == (-128, 127)
    with pytest.raises(UnsupportedError, match="input 's', which is string"):
        random_inputs([Tensor("s", (1,), DType.STRING)], seed=0)


def test_a_graph_of_nxps_converter_is_refused_by_name() -> None:
    from tests.compat import nxp_file

    data = write_model(nxp_file.converted(read_model(tiny.convnet())))
    with pytest.raises(FormatError, match=r"m.tflite, operator 0.*made by NXP's converter.*only NXP's runtime"):
        LiteRtRunner(data, source="m.tflite")


def test_a_custom_operator_litert_does_not_know_is_a_sentence() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.FLOAT32) for name in "xy")
    g.custom("Mystery", [x], [y])
    runner = LiteRtRunner(write_model(g.finish([x], [y])), source="m.tflite")
    with pytest.raises(RuntimeFailure, match=r"m\.tflite: LiteRT refused the model"):
        runner.run([np.zeros((1, 4), np.float32)])


def test_a_state_cannot_be_shared_across_a_cut() -> None:
    model = read_model(convert(tiny.sandwich(), Options()).model)
    graph = model.main
    state = Tensor("state", (1, 4, 4, 2), DType.INT8, graph.tensors[graph.inputs[0]].quantization, is_variable=True)
    graph.tensors.append(state)
    at = len(graph.tensors) - 1
    for position, name in ((0, "first"), (len(graph.operators) + 1, "last")):
        graph.tensors.append(Tensor(name, (1, 4, 4, 2), DType.INT8, state.quantization))
        graph.operators.insert(position, Operator("ADD", [graph.inputs[0], at], [len(graph.tensors) - 1]))
    with pytest.raises(UnsupportedError, match="state 'state' is used on both sides"):
        LiteRtRunner(write_model(Model([graph])))
