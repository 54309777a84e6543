from __future__ import annotations

import numpy as np
import pytest

from openneutron.convert import convert
from openneutron.errors import RuntimeFailure
from openneutron.litert import DType, GraphBuilder, write_model
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner


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


def test_a_custom_operator_litert_does_not_know_is_a_sentence() -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.FLOAT32) for name in "xy")
    g.custom("Mystery", [x], [y])
    runner = LiteRtRunner(write_model(g.finish([x], [y])), source="m.tflite")
    with pytest.raises(RuntimeFailure, match=r"m\.tflite: LiteRT refused the model"):
        runner.run([np.zeros((1, 4), np.float32)])
