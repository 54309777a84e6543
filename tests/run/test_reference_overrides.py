"""The forms equal LiteRT's reference kernels wherever those are right, and go on where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert.interpreter import OpResolverType

from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Graph, Model
from openneutron.options import Options
from openneutron.run.golden_source import golden_source
from openneutron.run.reference_overrides import _DIV
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.golden import interpret


def softmax(depth: int, dtype: DType, scale: float = 0.25, beta: float = 1.0) -> bytes:
    g = GraphBuilder()
    x = g.tensor("x", (2, depth), dtype, scale=scale, zero_point=3)
    y = g.tensor("y", (2, depth), dtype, scale=1 / 256, zero_point=0 if dtype is DType.UINT8 else -128)
    g.op("SOFTMAX", [x], [y], beta=beta)
    return write_model(g.finish([x], [y]))


def total(dtype: DType, quantized: bool = True) -> Graph:
    g = GraphBuilder()
    x = g.tensor("x", (2, 9, 5), dtype, *((0.1, 7) if quantized else ()))
    axes = g.tensor("axes", (2,), DType.INT32, data=[0, -2])
    y = g.tensor("y", (5,), dtype, *((0.9, 11) if quantized else ()))
    g.op("SUM", [x, axes], [y], keep_dims=False)
    return g.finish([x], [y]).main


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize(("depth", "scale", "beta"), [(512, 0.25, 1.0), (1000, 0.3, 0.7), (3001, 1.7, 1.0)])
def test_a_deep_softmax_is_the_reference_kernels_on_steep_inputs(
    dtype: DType, depth: int, scale: float, beta: float
) -> None:
    data = softmax(depth, dtype, scale, beta)
    runner = LiteRtRunner(data)
    assert "SOFTMAX" in runner.notes[0]
    for seed in range(5):
        inputs = random_inputs(runner.inputs, seed=seed)
        (want,) = interpret(data, inputs, OpResolverType.BUILTIN_REF)
        assert np.array_equal(runner.run(inputs).outputs["y"], want)


@pytest.mark.parametrize("depth", [512, 1001, 9000])
def test_a_deep_softmax_goes_on_where_the_reference_kernel_aborts(depth: int) -> None:
    data = softmax(depth, DType.INT8)
    ours = LiteRtRunner(convert(data, Options()).model)
    rows = np.zeros((2, depth), np.int8)
    rows[1, depth // 2] = 2
    want = LiteRtRunner(data).run([rows]).outputs["y"]
    assert np.array_equal(ours.run([rows]).outputs["y"], want)
    assert set(np.unique(want[0])) == {-128}


@pytest.mark.parametrize("scale", [2.0**-27, 7.84e-9, 1e-12, 1e-30])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_a_softmax_of_all_but_equal_values_gives_each_its_share(dtype: DType, scale: float) -> None:
    data = softmax(20, dtype, scale)
    ours, reference = LiteRtRunner(convert(data, Options()).model), LiteRtRunner(data)
    assert ours.neutron_graphs == 1 and "SOFTMAX" in reference.notes[0]
    inputs = random_inputs(reference.inputs, seed=4)
    want = reference.run(inputs).outputs["y"]
    assert np.array_equal(ours.run(inputs).outputs["y"], want)
    assert set(np.unique(want.astype(int) + (0 if dtype is DType.UINT8 else 128))) == {13}  # 256 / 20


def test_a_shallow_softmax_is_left_to_litert() -> None:
    assert LiteRtRunner(softmax(511, DType.INT8)).notes == ()


@pytest.mark.parametrize(
    ("dtype", "quantized", "engine"),
    [
        (DType.INT8, True, "default"),
        (DType.UINT8, True, "reference"),
        (DType.FLOAT32, False, "reference"),
        (DType.INT32, False, "reference"),
    ],
)
def test_only_the_sum_of_int8_is_not_the_reference_kernels(dtype: DType, quantized: bool, engine: str) -> None:
    graph = total(dtype, quantized)
    assert golden_source(graph, graph.operators[0]).engine == engine


def test_the_sum_of_int8_is_the_sum_of_what_the_bytes_mean() -> None:
    data = write_model(Model([total(DType.INT8)]))
    runner = LiteRtRunner(data)
    assert "INT8" in runner.notes[0]
    values = np.random.default_rng(0).integers(-128, 128, (2, 9, 5), np.int8)
    real = (0.1 * (values.astype(np.float64) - 7)).sum(axis=(0, 1)) / 0.9 + 11
    assert np.array_equal(runner.run([values]).outputs["y"], np.clip(np.round(real), -128, 127))
    ours = LiteRtRunner(convert(data, Options()).model)
    assert np.array_equal(ours.run([values]).outputs["y"], runner.run([values]).outputs["y"])


def test_only_rows_that_abort_come_from_the_form() -> None:
    data = softmax(700, DType.INT8)
    rows = np.random.default_rng(1).integers(-128, 128, (2, 700)).astype(np.int8)
    rows[0] = 5
    (want,) = interpret(data, [np.stack([rows[1], rows[1]])], OpResolverType.BUILTIN_REF)
    got = LiteRtRunner(data).run([rows]).outputs["y"]
    assert set(got[0]) == {-128} and np.array_equal(got[1], want[1])


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_a_division_is_the_reference_kernels_where_that_one_is_defined(dtype: DType, activation: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype.numpy).reshape(1, 256)
    low = int(np.iinfo(dtype.numpy).min)
    for stored, scale, out_scale in ((low + 37, 0.02, 0.1), (low + 200, 0.01, 0.05), (low + 255, 0.4, 0.002)):
        g = GraphBuilder()
        x = g.tensor("x", (1, 256), dtype, scale=0.1, zero_point=low + 100)
        by = g.tensor("by", (1,), dtype, scale=scale, zero_point=low + 30, data=[stored])
        y = g.tensor("y", (1, 256), dtype, scale=out_scale, zero_point=low + 90)
        g.op("DIV", [x, by], [y], fused_activation_function=activation)
        graph = g.finish([x], [y]).main
        (want,) = interpret(write_model(Model([graph])), [every], OpResolverType.BUILTIN_REF)
        got = _DIV.compute(graph, graph.operators[0], {x: every, by: graph.tensors[by].data})
        # Where the shift leaves its range the form says 0, the kernel anything.
        near = np.abs(every.astype(np.int64) - (low + 100)) > 2
        assert np.array_equal(got[near], want[near])


def test_a_division_beyond_the_kernels_shift_is_zero() -> None:
    g = GraphBuilder()
    x = g.tensor("x", (1, 5), DType.INT8, scale=0.1, zero_point=0)
    by = g.tensor("by", (1,), DType.INT8, scale=0.5, zero_point=0, data=[100])
    y = g.tensor("y", (1, 5), DType.INT8, scale=4.0, zero_point=7)
    g.op("DIV", [x, by], [y], fused_activation_function="NONE")
    data = write_model(g.finish([x], [y]))
    given = [np.array([[0, 1, -1, 2, -128]], np.int8)]
    runner, ours = LiteRtRunner(data), LiteRtRunner(convert(data, Options()).model)
    assert "DIV" in runner.notes[0]
    assert np.array_equal(runner.run(given).outputs["y"], np.full((1, 5), 7))
    assert np.array_equal(ours.run(given).outputs["y"], runner.run(given).outputs["y"])
