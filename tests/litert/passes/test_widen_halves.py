from __future__ import annotations

import numpy as np

import openneutron as on
from openneutron.litert import DType, read_model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.widen_halves import widen_halves
from openneutron.run.runner import LiteRtRunner

WEIGHTS = np.random.default_rng(8).standard_normal((4, 6)).astype(np.float16)
ROWS = np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32)


def halves(*, as_output: bool = False) -> bytes:
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.FLOAT32)
    half = g.tensor("half", (4, 6), DType.FLOAT16, data=WEIGHTS)
    w = g.tensor("w", (4, 6), DType.FLOAT32)
    g.op("DEQUANTIZE", [half], [w])
    y = g.tensor("y", (1, 4), DType.FLOAT32)
    g.op("FULLY_CONNECTED", [x, w, -1], [y])
    return write_model(g.finish([x], [y, w] if as_output else [y]))


def test_a_half_becomes_the_constant_it_stands_for_and_the_result_is_the_same() -> None:
    model = read_model(halves())
    assert widen_halves(model.main) == 1
    assert [op.code for op in model.main.operators] == ["FULLY_CONNECTED"]
    (wanted,) = LiteRtRunner(halves()).run([ROWS[:1]]).outputs.values()
    (found,) = LiteRtRunner(write_model(model)).run([ROWS[:1]]).outputs.values()
    assert np.array_equal(wanted, found)


def test_a_sparse_half_that_was_read_is_dense_already() -> None:
    """The reader gives dense values; the network without DENSIFY computes the wanted result."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 6), DType.FLOAT32)
    half = g.tensor("half", (4, 6), DType.FLOAT16, data=WEIGHTS)
    dense, w = g.tensor("dense", (4, 6), DType.FLOAT16), g.tensor("w", (4, 6), DType.FLOAT32)
    y = g.tensor("y", (1, 4), DType.FLOAT32)
    g.op("DENSIFY", [half], [dense])
    g.op("DEQUANTIZE", [dense], [w])
    g.op("FULLY_CONNECTED", [x, w, -1], [y])
    model = g.finish([x], [y])
    assert widen_halves(model.main) == 2
    assert [op.code for op in model.main.operators] == ["FULLY_CONNECTED"]
    (wanted,) = LiteRtRunner(halves()).run([ROWS[:1]]).outputs.values()
    (found,) = LiteRtRunner(write_model(model)).run([ROWS[:1]]).outputs.values()
    assert np.array_equal(wanted, found)


def test_one_that_is_an_output_of_the_graph_stays() -> None:
    model = read_model(halves(as_output=True))
    assert widen_halves(model.main) == 0 and len(model.main.operators) == 2


def test_a_model_with_halves_is_quantized() -> None:
    program = on.compile(halves(), calibration=ROWS)
    assert program.report.totals.operators_converted == program.report.totals.operators_total == 1
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 25
