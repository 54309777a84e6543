"""Clamps become part of the operator before them, where nothing else reads its result."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert import DType, Model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.fuse_activations import fuse_activations
from openneutron.run.runner import LiteRtRunner

SHAPE = (1, 4)
GIVEN = np.float32([[-3, 2, 9, -0.5]])


def added(clamp: str, *, both: bool = False, fused: str = "NONE", dtype: DType = DType.FLOAT32) -> Model:
    """A sum and a clamp behind it; with `both` the sum is an output too."""
    g = GraphBuilder()
    x, one, y, z = (g.tensor(name, SHAPE, dtype) for name in ("x", "one", "y", "z"))
    g.op("ADD", [x, one], [y], fused_activation_function=fused)
    g.op(clamp, [y], [z])
    return g.finish([x, one], [y, z] if both else [z])


@pytest.mark.parametrize("clamp", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_a_clamp_behind_a_sum_is_part_of_it(clamp: str) -> None:
    model = added(clamp)
    given = [GIVEN, np.ones(SHAPE, np.float32)]
    (wanted,) = LiteRtRunner(write_model(model)).run(given).outputs.values()
    assert fuse_activations(model.main) == 1 and [op.code for op in model.main.operators] == ["ADD"]
    (found,) = LiteRtRunner(write_model(model)).run(given).outputs.values()
    assert np.array_equal(found, wanted) and not np.array_equal(wanted, GIVEN + 1)


@pytest.mark.parametrize(
    "model",
    [added("RELU", both=True), added("RELU", fused="RELU6"), added("LOGISTIC"), added("RELU", dtype=DType.INT32)],
    ids=["an output", "a clamp already", "no clamp", "integers"],
)
def test_what_cannot_be_fused_stays(model: Model) -> None:
    assert fuse_activations(model.main) == 0 and len(model.main.operators) == 2
