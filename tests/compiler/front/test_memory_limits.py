"""Tensors larger than the memory: rows of them pass through a cascade, or their operators stay on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.front.memory_limits import explain_too_large, fits_whole
from openneutron.convert import convert
from openneutron.errors import UnsupportedError
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs

Q = {"scale": 0.1, "zero_point": 3}
WIDE = (1, 64, 64, 160)  # 655,360 bytes: more than mcxn94x has


def narrow_wide_narrow(middle: str) -> bytes:
    """RELU, a tensor wider than the memory, and a mean of it."""
    g = GraphBuilder()
    x = g.tensor("x", (1, 64, 64, 1), DType.INT8, **Q)
    first = g.tensor("first", (1, 64, 64, 1), DType.INT8, **Q)
    g.op("RELU", [x], [first])
    slopes = g.tensor(
        "slopes", (1, 1, 1, 160), DType.INT8, **Q, data=np.arange(-80, 80, dtype=np.int8)[None, None, None]
    )
    wide = g.tensor("wide", WIDE, DType.INT8, **Q)
    g.op("MUL", [first, slopes], [wide], fused_activation_function="NONE")
    shape = (64, 160, 64, 1) if middle == "TRANSPOSE" else WIDE
    last = g.tensor("last", shape, DType.INT8, **Q)
    if middle == "TRANSPOSE":
        g.op("TRANSPOSE", [wide, g.tensor("order", (4,), DType.INT32, data=[1, 3, 2, 0])], [last])
    else:
        g.op(middle, [wide], [last])
    y = g.tensor("y", (shape[0], 1, 1, shape[3]), DType.INT8, **Q)
    g.op("MEAN", [last, g.tensor("axes", (2,), DType.INT32, data=[1, 2])], [y], keep_dims=True)
    return write_model(g.finish([x], [y]))


def test_rows_of_a_tensor_larger_than_the_memory_pass_through() -> None:
    data = narrow_wide_narrow("ABS")
    result = convert(data, Options(target="mcxn94x"))
    assert all(op.converted for op in result.report.operators)
    assert result.report.totals.peak_bytes < targets.load("mcxn94x").sram_bytes < np.prod(WIDE)
    inputs = random_inputs(LiteRtRunner(data).inputs, seed=0)
    ours, want = LiteRtRunner(result.model).run(inputs), LiteRtRunner(data).run(inputs)
    assert np.array_equal(ours.outputs["y"], want.outputs["y"])


def test_what_needs_all_of_it_stays_on_the_cpu_with_the_bytes() -> None:
    data = narrow_wide_narrow("TRANSPOSE")
    result = convert(data, Options(target="mcxn94x"))
    left = {op.code: op for op in result.report.operators if not op.converted}
    assert "TRANSPOSE" in left and left["TRANSPOSE"].reason_code == "too_large"
    told = "alone it needs 1,310,720 bytes (wide 655,360, last 655,360), mcxn94x has 524,288"
    assert left["TRANSPOSE"].reason == told
    assert next(op for op in result.report.operators if op.code == "RELU").converted
    inputs = random_inputs(LiteRtRunner(data).inputs, seed=0)
    ours, want = LiteRtRunner(result.model).run(inputs), LiteRtRunner(data).run(inputs)
    assert np.array_equal(ours.outputs["y"], want.outputs["y"])


@pytest.mark.parametrize("asked", [{"fit_bytes": 100_000}, {"one_graph": True}], ids=str)
def test_a_budget_or_a_whole_graph_is_not_cut(asked: dict[str, int]) -> None:
    with pytest.raises(UnsupportedError, match="bytes"):
        convert(narrow_wide_narrow("TRANSPOSE"), Options(target="mcxn94x", **asked))


def test_the_reason_names_tensors_and_what_is_needed_beside_them() -> None:
    graph = read_model(narrow_wide_narrow("ABS")).main
    reason = explain_too_large(graph, 2, 1_400_000, 1_310_720, targets.load("mcxn94x"))
    assert (reason.code, reason.where) == ("too_large", "last")
    assert "wide 655,360, last 655,360, beside them 89,280" in reason.message and "1,400,000" in reason.message


def test_small_graphs_need_no_trial() -> None:
    graph = read_model(narrow_wide_narrow("ABS")).main
    assert not fits_whole(graph, targets.load("mcxn94x")) and fits_whole(graph, targets.load("imx95"))
