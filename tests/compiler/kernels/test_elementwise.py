"""What the element-wise kernels share: broadcasting of any rank, constants, streaming."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.litert.graph import DType
from tests.compiler.kernels.binary import PLAIN, add_binary, refused
from tests.golden import ModelMaker

NAMED = {
    "bias over channels": ([1, 6, 5, 8], [8]),
    "squeeze and excite": ([1, 6, 5, 8], [1, 1, 1, 8]),
    "mask over pixels": ([1, 6, 5, 8], [1, 6, 5, 1]),
    "outer product": ([1, 6, 1, 1], [1, 1, 5, 8]),
    "batch against one image": ([3, 4, 4, 2], [1, 4, 4, 2]),
    "one number": ([1, 6, 5, 8], []),
    "rank five, equal": ([2, 2, 3, 2, 4], [2, 2, 3, 2, 4]),
    "rank five, inner broadcast": ([2, 2, 3, 2, 4], [2, 4]),
    "rank six, two patterns": ([2, 2, 1, 3, 2, 4], [2, 2, 1, 1, 2, 4]),
}


@pytest.mark.parametrize("shapes", NAMED.values(), ids=NAMED)
def test_named_broadcasts(shapes: tuple[list[int], list[int]]) -> None:
    maker = ModelMaker(np.random.default_rng(3))
    for code in ("ADD", "SUB", "MUL"):
        add_binary(maker, code, shapes, PLAIN)
        add_binary(maker, code, shapes, PLAIN, constant=1)
    maker.check()


def test_a_residual_chain_streams() -> None:
    maker = ModelMaker(np.random.default_rng(3))
    x = maker.input((1, 32, 16, 8), DType.INT8, 0.05, 3)
    for step in range(4):
        name = f"t{step}"
        y = (
            maker.builder.tensor(name, (1, 32, 16, 8), DType.INT8, 0.06, step)
            if step < 3
            else maker.output((1, 32, 16, 8), DType.INT8, 0.07, 0)
        )
        maker.op("ADD" if step % 2 else "MUL", [x, maker.inputs[0]], y)
        x = y
    maker.check()


def test_a_pattern_that_changes_too_often_is_refused() -> None:
    repeats = tuple(1 + at % 2 for at in range(8))
    assert "six nested loops" in refused("ADD", shapes=[repeats, (2,) * 8])
