"""add, mul, minmax, prelu and squared_difference: broadcasting and arithmetic at 0 LSB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openneutron.compiler.broadcast import broadcast
from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, TARGETS, ModelMaker, f32, refusal, scales, seeds, zero_points

CODES = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "PRELU", "SQUARED_DIFFERENCE")
FUSED = ("ADD", "SUB", "MUL")


def output_scale(code: str, s1: float, s2: float, gain: float) -> float:
    """A scale that spreads results over the type; finer ones are refused by LiteRT for some operators."""
    natural = {"MUL": s1 * s2 * 64, "PRELU": max(s1, s1 * s2 * 64), "SQUARED_DIFFERENCE": max(s1, s2) ** 2 * 128}
    return f32(natural.get(code, max(s1, s2) * 1.5) * gain)


def add_binary(
    maker: ModelMaker, code: str, shapes: Sequence[Sequence[int]], case: dict[str, Any], constant: int = -1
) -> None:
    """Add the operator on two shapes; input `constant`, if any, is stored in the model."""
    dtype = case["dtype"]
    inputs = []
    for at, shape in enumerate(shapes):
        q = (case[f"s{at}"], case[f"z{at}"])
        if at == constant:
            inputs.append(maker.constant(maker.values(shape, dtype), dtype, *q))
        else:
            inputs.append(maker.input(shape, dtype, *q))
    out = np.broadcast_shapes(*map(tuple, shapes))
    scale = output_scale(code, case["s0"], case["s1"], case["gain"])
    y = maker.output(out, dtype, scale, case["z2"])
    options = {"fused_activation_function": case["activation"]} if code in FUSED else {}
    maker.op(code, inputs, y, **options)


@st.composite
def cases(draw: st.DrawFn, code: str) -> dict[str, Any]:
    dtype = DType.INT8 if code == "SQUARED_DIFFERENCE" else draw(st.sampled_from([DType.INT8, DType.UINT8]))
    return {
        "dtype": dtype, "s0": draw(scales()), "s1": draw(scales()), "z0": draw(zero_points(dtype)),
        "z1": draw(zero_points(dtype)), "z2": draw(zero_points(dtype)), "gain": 2.0 ** draw(st.floats(-3, 3)),
        "activation": draw(st.sampled_from(ACTIVATIONS)),
    }  # fmt: skip


@st.composite
def shape_pairs(draw: st.DrawFn, code: str) -> list[list[int]]:
    """Two shapes that broadcast; PRELU's input has the output's shape."""
    rank = draw(st.integers(1, 4))
    full = [draw(st.integers(1, 5)) for _ in range(rank)]
    shapes = [full]
    shapes.append([size if draw(st.booleans()) else 1 for size in full][draw(st.integers(0, rank - 1)) :])
    if code != "PRELU":
        if draw(st.booleans()):
            shapes[0] = [size if draw(st.booleans()) else 1 for size in full]
        if draw(st.booleans()):
            shapes.reverse()
    return shapes


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=25)
@given(st.data())
def test_any_broadcast(code: str, data: st.DataObject) -> None:
    maker = ModelMaker(np.random.default_rng(data.draw(seeds())))
    for _ in range(6):
        constant = data.draw(st.sampled_from([-1, -1, 1] if code == "PRELU" else [-1, -1, 0, 1]))
        add_binary(maker, code, data.draw(shape_pairs(code)), data.draw(cases(code)), constant)
    maker.check(data.draw(st.sampled_from(TARGETS)))


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=6)
@given(st.data())
def test_every_pair_of_bytes(code: str, data: st.DataObject) -> None:
    case = data.draw(cases(code))
    maker = ModelMaker(np.random.default_rng(0))
    add_binary(maker, code, [(1, 256, 1, 256), (1, 256, 1, 256)], case)
    values = np.arange(256, dtype=np.uint8).view(case["dtype"].numpy)
    maker.data[0] = np.broadcast_to(values[:, None], (256, 256)).reshape(1, 256, 1, 256).copy()
    maker.data[1] = np.broadcast_to(values[None, :], (256, 256)).reshape(1, 256, 1, 256).copy()
    maker.check()


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
PLAIN = {"dtype": DType.INT8, "s0": 0.05, "s1": 0.1, "z0": 3, "z1": -4, "z2": 5, "gain": 1.0, "activation": "NONE"}


@pytest.mark.parametrize("shapes", NAMED.values(), ids=NAMED)
def test_named_broadcasts(shapes: tuple[list[int], list[int]]) -> None:
    maker = ModelMaker(np.random.default_rng(3))
    for code in ("ADD", "SUB", "MUL"):
        add_binary(maker, code, shapes, PLAIN)
        add_binary(maker, code, shapes, PLAIN, constant=1)
    maker.check()


def test_one_tensor_twice() -> None:
    maker = ModelMaker(np.random.default_rng(3))
    x = maker.input((1, 4, 4, 3), DType.INT8, 0.05, 3)
    maker.op("MUL", [x, x], maker.output((1, 4, 4, 3), DType.INT8, 0.2, -3))
    maker.check()


def test_a_residual_chain_streams() -> None:
    maker = ModelMaker(np.random.default_rng(3))
    x = maker.input((1, 32, 16, 8), DType.INT8, 0.05, 3)
    for step in range(4):
        name = f"t{step}"
        y = maker.builder.tensor(name, (1, 32, 16, 8), DType.INT8, 0.06, step) if step < 3 else maker.output(
            (1, 32, 16, 8), DType.INT8, 0.07, 0
        )
        maker.op("ADD" if step % 2 else "MUL", [x, maker.inputs[0]], y)
        x = y
    maker.check()


def test_collapsing_keeps_rows_up_to_rank_four() -> None:
    kept = broadcast(((1, 4, 1, 2), (4, 3, 1)), (1, 4, 3, 2))
    assert kept is not None and kept.inputs == ((1, 4, 1, 2), (1, 4, 3, 1))
    assert broadcast(((2, 1, 2, 1, 2), (2, 2, 2, 2, 2)), (2, 2, 2, 2, 2)) is None
    assert broadcast(((2, 3), (3, 3)), (3, 3)) is None


REFUSED = {
    "sum into a far finer scale": ("ADD", {"gain": 2.0**-21}, "2^19"),
    "square into a finer scale": ("SQUARED_DIFFERENCE", {"gain": 2.0**-20}, "2^14"),
    "product beyond thirty bits": ("MUL", {"gain": 2.0**-40}, "2^30"),
    "unknown activation": ("ADD", {"activation": "TANH"}, "activation number 4"),
}


@pytest.mark.parametrize(("code", "change", "why"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: str, change: dict[str, Any], why: str) -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_binary(maker, code, [(1, 4), (1, 4)], PLAIN | change)
    assert why in refusal(maker.model())


def test_a_pattern_that_changes_too_often_is_refused() -> None:
    maker = ModelMaker(np.random.default_rng(0))
    add_binary(maker, "ADD", [(2, 1, 2, 1, 2), (2, 2, 2, 2, 2)], PLAIN)
    assert "four changes of pattern" in refusal(maker.model())
