"""wide: the channel tables of 16-bit activations; the kernels' own tests compare them with LiteRT."""

from __future__ import annotations

import numpy as np

from openneutron.compiler.kernels.wide import wide_table
from openneutron.compiler.signature import of_operator
from openneutron.litert.graph import DType
from openneutron.machine import targets
from openneutron.microcode.table import Rounding
from tests.golden import ModelMaker, refusal


def _layer(inputs: int = 4, scale: float = 0.5) -> ModelMaker:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, inputs), DType.INT16, 0.5, 0)
    w = maker.constant(np.zeros((3, inputs)), DType.INT8, 0.5, 0)
    maker.op("FULLY_CONNECTED", [x, w], maker.output((1, 3), DType.INT16, scale, 0))
    return maker


def test_columns_are_padded_and_the_bias_is_split() -> None:
    model = _layer().model()
    op = of_operator(model.main, model.main.operators[0])
    bias = np.array([1, -1, 1 << 40])
    table = wide_table(op, bias, targets.load("imxrt700"))
    assert table.rounding is Rounding.SINGLE and table.narrow == 0
    low, multipliers, shifts, high = table.data.view("<i4").reshape(4, 8)
    assert low.tolist() == [1, -1, 0, 0, 0, 0, 0, 0] and high.tolist() == [0, -1, 256, 0, 0, 0, 0, 0]
    assert multipliers[0] / 2.0 ** shifts[0] == 0.5


def test_sums_beyond_47_bits_are_refused() -> None:
    assert "2^47" in refusal(_layer(1 << 25, 2.0**20).model(), "imx95")
