"""lut: every table against LiteRT's reference kernels, all 256 inputs at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import TARGETS, ModelMaker, f32, refusal, scales, zero_points
from tests.sampling import examples

# Operator, options, and whether LiteRT has a UINT8 form.
FUNCTIONS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "logistic": ("LOGISTIC", {}, True),
    "tanh": ("TANH", {}, True),
    "gelu": ("GELU", {"approximate": False}, True),
    "gelu by tanh": ("GELU", {"approximate": True}, True),
    "exp": ("EXP", {}, False),
    "log": ("LOG", {}, False),
    "elu": ("ELU", {}, False),
    "hard swish": ("HARD_SWISH", {}, True),
    "leaky relu": ("LEAKY_RELU", {"alpha": 0.1}, True),
    "leaky relu, negative slope": ("LEAKY_RELU", {"alpha": -0.7}, True),
    "abs": ("ABS", {}, False),
    "sqrt": ("SQRT", {}, False),
    "rsqrt": ("RSQRT", {}, False),
    "neg": ("NEG", {}, False),
}
EVERY_BYTE = {DType.INT8: np.arange(-128, 128, dtype=np.int8), DType.UINT8: np.arange(256, dtype=np.uint8)}


def add_function(maker: ModelMaker, name: str, dtype: DType, in_q: tuple[float, int], out_q: tuple[float, int]) -> None:
    """Add the operator on all 256 values; parameters LiteRT fixes are put in place."""
    code, options, _ = FUNCTIONS[name]
    if code == "LOGISTIC":
        out_q = (1 / 256, out_q[1])
    if code in ("SQRT", "RSQRT"):
        in_q = (in_q[0], -128)  # the reference fails on inputs below the zero point
    if code == "NEG":
        in_q = out_q = (in_q[0], 0)
    x = maker.input((1, 8, 4, 8), dtype, *in_q)
    maker.data[-1] = EVERY_BYTE[dtype].reshape(1, 8, 4, 8).copy()
    maker.op(code, [x], maker.output((1, 8, 4, 8), dtype, *out_q), **options)


@pytest.mark.parametrize("name", FUNCTIONS)
@examples(12)
@given(st.data())
def test_tables(name: str, data: st.DataObject) -> None:
    code, _, unsigned = FUNCTIONS[name]
    maker = ModelMaker(np.random.default_rng(0))
    for _ in range(6):
        dtype = data.draw(st.sampled_from([DType.INT8, DType.UINT8] if unsigned else [DType.INT8]))
        in_q = (data.draw(scales(-9, -1)), data.draw(zero_points(dtype)))
        # HARD_SWISH is refused where the output is 128 times finer than the input.
        out_q = (data.draw(scales(-7 if code == "HARD_SWISH" else -10, 0)), data.draw(zero_points(dtype)))
        add_function(maker, name, dtype, in_q, out_q)
    maker.check()


@pytest.mark.parametrize("target", TARGETS)
def test_every_target(target: str) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    for name in FUNCTIONS:
        add_function(maker, name, DType.INT8, (0.05, 3), (0.03, -7))
    maker.check(target)


def unary(code: str, in_q: tuple[float, int], out_q: tuple[float, int], dtype: DType = DType.INT8) -> ModelMaker:
    maker = ModelMaker(np.random.default_rng(0))
    x = maker.input((1, 4), dtype, *in_q)
    maker.op(code, [x], maker.output((1, 4), dtype, *out_q))
    return maker


REFUSED = {
    "logistic of another scale": (unary("LOGISTIC", (0.1, 0), (0.01, 0)), "1/256"),
    "negation that moves the zero point": (unary("NEG", (0.1, 3), (0.1, 3)), "zero point is 0"),
    "negation that rescales": (unary("NEG", (0.1, 0), (0.2, 0)), "SUB from zero"),
    "hard swish into a finer scale": (unary("HARD_SWISH", (1.0, 0), (f32(1 / 1024), 0)), "exponent is 4"),
    "inverse root of a huge scale": (unary("RSQRT", (4.0, -128), (4096.0, 0)), "4096"),
    "exponential of UINT8": (unary("EXP", (0.1, 0), (0.1, 0), DType.UINT8), "uint8"),
}


@pytest.mark.parametrize(("maker", "why"), REFUSED.values(), ids=REFUSED)
def test_refusals(maker: ModelMaker, why: str) -> None:
    assert why in refusal(maker.model())


def test_below_zero_a_root_is_the_smallest_output() -> None:
    from openneutron.compiler.numbers import tables

    scaling = tables.Scaling(0.1, 0, 0.1, 5)
    for table in (tables.square_root(scaling), tables.inverse_square_root(scaling)):
        assert (table[128:].view(np.int8) == -128).all()


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 7), min_size=0, max_size=5))
@settings(max_examples=60, deadline=None)
def test_given_tables(seed: int, shape: list[int]) -> None:
    """LiteRT computes the composite by its decomposition, we by one look-up."""
    rng = np.random.default_rng(seed)
    maker = ModelMaker(rng)
    x, y = maker.input(shape, DType.INT8, 0.1, 3), maker.output(shape, DType.INT8, 0.2, -4)
    maker.builder.table(x, rng.integers(-128, 128, 256).astype(np.int8), y)
    maker.check()


def test_other_composites_are_refused_by_name() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    x, y = maker.input((4,), DType.INT8, 0.1, 3), maker.output((4,), DType.INT8, 0.2, -4)
    maker.builder.table(x, np.zeros(256, np.int8), y).options2.name = "odml.rms_norm"
    assert "odml.rms_norm" in refusal(maker.model())
