"""Groups for the NPU and what stays: operators whose results nobody reads make no NeutronGraph."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.front.ingest import ingest
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.litert.graph import Model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs


def _unread(on_cpu: str) -> Model:
    """x → ABS → output; beside it RELU, an operator on the CPU or none, and another RELU, whose result nobody reads."""
    g = GraphBuilder()
    names = ("x", "y", "a", "b", "c")
    x, y, a, b, c = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=3) for name in names)
    g.op("RELU", [x], [a])
    if on_cpu:
        axes = [g.tensor("axes", (1,), DType.INT32, data=[1])] if on_cpu == "REVERSE_V2" else []
        g.op(on_cpu, [a, *axes], [b])
    g.op("RELU6", [b if on_cpu else a], [c])
    g.op("ABS", [x], [y])
    return g.finish([x], [y])


def test_unread_operators_are_in_no_group() -> None:
    cut = ingest(_unread("").main, targets.load("imxrt700"))
    assert cut.dropped == {0, 1} and [group.operators for group in cut.groups] == [[2]]


def test_what_the_cpu_reads_is_computed() -> None:
    cut = ingest(_unread("REVERSE_V2").main, targets.load("imxrt700"))
    assert cut.dropped == {2} and [group.operators for group in cut.groups] == [[0, 3], [1]]


@pytest.mark.parametrize("on_cpu", ["", "REVERSE_V2"])
def test_a_file_with_unread_operators_runs(on_cpu: str) -> None:
    source = write_model(_unread(on_cpu))
    result = convert(source, Options())
    ours, reference = LiteRtRunner(result.model), LiteRtRunner(source)
    assert ours.neutron_graphs == 1
    inputs = random_inputs(reference.inputs, seed=1)
    assert np.array_equal(ours.run(inputs).outputs["y"], reference.run(inputs).outputs["y"])
