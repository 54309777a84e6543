"""Operators without a 16-bit kernel compute the same as several that have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openneutron.litert import DType, Model, write_model
from openneutron.litert.build import GraphBuilder
from openneutron.litert.passes.widen_operators import widen_operators
from openneutron.run.runner import LiteRtRunner

SHAPE = (1, 2, 2, 4)
GIVEN = np.linspace(-7, 7, 16, dtype=np.float32).reshape(SHAPE)
RANGES = {"x": (-7.0, 7.0), "y": (-3.5, 7.0)}


def one(code: str, slope: Any = None, **options: Any) -> Model:
    g = GraphBuilder()
    x, y = (g.tensor(name, SHAPE, DType.FLOAT32) for name in "xy")
    inputs = [x] if slope is None else [x, g.tensor("slope", np.shape(slope), DType.FLOAT32, data=slope)]
    g.op(code, inputs, [y], **options)
    return g.finish([x], [y])


CASES = {
    "a slope for each channel": one("PRELU", np.float32([[[0.5, -0.25, 0, 1.5]]])),
    "one slope": one("LEAKY_RELU", alpha=0.2),
    "hard swish": one("HARD_SWISH"),
}


@pytest.mark.parametrize("model", CASES.values(), ids=CASES)
def test_an_operator_becomes_several_that_compute_the_same(model: Model) -> None:
    (wanted,) = LiteRtRunner(write_model(model)).run([GIVEN]).outputs.values()
    inner = widen_operators(model.main, {"y"}, RANGES)
    assert {op.code for op in model.main.operators} <= {"ADD", "MUL", "RELU"} and len(inner) >= 2
    (found,) = LiteRtRunner(write_model(model)).run([GIVEN]).outputs.values()
    assert np.allclose(found, wanted, atol=1e-5)
    model.main.outputs = [at for at, tensor in enumerate(model.main.tensors) if tensor.name in inner]
    model.signatures = []
    for name, value in LiteRtRunner(write_model(model)).run([GIVEN]).outputs.items():
        low, high = inner[name]
        assert low - 1e-5 <= value.min() and value.max() <= high + 1e-5, name


def test_others_stay() -> None:
    model = one("HARD_SWISH")
    assert widen_operators(model.main, {"z"}, RANGES) == {} and widen_operators(model.main, {"y"}, {}) == {}
    assert [op.code for op in model.main.operators] == ["HARD_SWISH"]
