from __future__ import annotations

import numpy as np
import pytest

from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert import DType
from openneutron.litert.graph import Tensor
from openneutron.run.given import bind_inputs, random_inputs
from openneutron.run.runner import LiteRtRunner
from tests import tiny


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
