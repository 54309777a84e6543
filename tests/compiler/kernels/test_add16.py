"""add16: ADD and SUB of 16-bit activations at 0 LSB; test_add has the general scales, this file the powers of two."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openneutron.litert.graph import DType
from tests.golden import ModelMaker, refusal


def add_sum(maker: ModelMaker, code: str, exponents: tuple[int, int, int], *, by_shifts: bool) -> None:
    inputs = [maker.input((1, 40, 8, 8), DType.INT16, 2.0**e, 0) for e in exponents[:2]]
    y = maker.output((1, 40, 8, 8), DType.INT16, 2.0 ** exponents[2], 0)
    maker.op(code, inputs, y, pot_scale_int16=by_shifts)


@pytest.mark.parametrize("code", ["ADD", "SUB"])
def test_powers_of_two(code: str) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    for shift, first, by_shifts in product((0, 1, 2, 7, 15), (True, False), (True, False)):
        fine, coarse = -12 - shift, -12
        add_sum(maker, code, (fine, coarse, -12) if first else (coarse, fine, -12), by_shifts=by_shifts)
    maker.check()


def test_what_litert_cannot_shift() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_sum(maker, "ADD", (-10, -12, -12), by_shifts=True)
    assert "shifting one input" in refusal(maker.model())


def test_a_sum_far_finer_than_its_inputs() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_sum(maker, "ADD", (-2, -2, -20), by_shifts=False)
    assert "2^14" in refusal(maker.model())
