"""Shared by the tests of kernels with two inputs: drawing shapes that broadcast, and checking them at 0 LSB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, TARGETS, ModelMaker, f32, refusal, scales, seeds, zero_points

FUSED = ("ADD", "SUB", "MUL")
BYTES = (DType.INT8, DType.UINT8)
WIDE = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")  # those that LiteRT has for INT16 too


def output_scale(code: str, s1: float, s2: float, gain: float, dtype: DType = DType.INT8) -> float:
    """A scale that spreads results over the type; finer ones are refused by LiteRT for some operators."""
    steps = 16384 if dtype is DType.INT16 else 64
    natural = {
        "MUL": s1 * s2 * steps,
        "PRELU": max(s1, s1 * s2 * 64),
        "SQUARED_DIFFERENCE": max(s1, s2) ** 2 * 128,
    }
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
    scale = output_scale(code, case["s0"], case["s1"], case["gain"], dtype)
    y = maker.output(out, dtype, scale, case["z2"])
    options = {"fused_activation_function": case["activation"]} if code in FUSED else {}
    maker.op(code, inputs, y, **options)


@st.composite
def cases(draw: st.DrawFn, code: str, wide: bool = False) -> dict[str, Any]:
    """Quantization of two inputs and an output; `wide` puts them far from one another, outputs on the coarse side."""
    spread = scales(-20, 4) if wide else scales()
    types = (*BYTES, DType.INT16) if code in WIDE else BYTES
    dtype = DType.INT8 if code == "SQUARED_DIFFERENCE" else draw(st.sampled_from(types))
    return {
        "dtype": dtype, "s0": draw(spread), "s1": draw(spread), "z0": draw(zero_points(dtype)),
        "z1": draw(zero_points(dtype)), "z2": draw(zero_points(dtype)),
        "gain": 2.0 ** draw(st.floats(0, 24) if wide else st.floats(-3, 3)),
        "activation": draw(st.sampled_from(ACTIVATIONS)),
    }  # fmt: skip


@st.composite
def shape_pairs(draw: st.DrawFn, code: str) -> list[list[int]]:
    """Two shapes that broadcast; PRELU's input has the output's shape."""
    # The reference broadcasts these five at any rank, the others up to four.
    rank = draw(st.integers(1, 6 if code in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM") else 4))
    full = [draw(st.integers(1, 5 if rank < 5 else 3)) for _ in range(rank)]
    shapes = [full]
    shapes.append([size if draw(st.booleans()) else 1 for size in full][draw(st.integers(0, rank - 1)) :])
    if code != "PRELU":
        if draw(st.booleans()):
            shapes[0] = [size if draw(st.booleans()) else 1 for size in full]
        if draw(st.booleans()):
            shapes.reverse()
    return shapes


def check_broadcasts(code: str, data: st.DataObject) -> None:
    """Six drawn shapes and parameters in one model."""
    maker = ModelMaker(np.random.default_rng(data.draw(seeds())))
    for _ in range(6):
        constant = data.draw(st.sampled_from([-1, -1, 1] if code == "PRELU" else [-1, -1, 0, 1]))
        add_binary(maker, code, data.draw(shape_pairs(code)), data.draw(cases(code)), constant)
    maker.check(data.draw(st.sampled_from(TARGETS)))


SPREAD = np.concatenate([np.arange(-32768, 32768, 260), [-32767, -1, 0, 32767]])[-256:].astype(np.int16)


def check_every_pair(code: str, data: st.DataObject) -> None:
    """All 65,536 pairs of bytes, or of 256 values of 16 bits, under drawn parameters, extreme ones as often as others."""
    case = data.draw(cases(code) | cases(code, wide=True))
    maker = ModelMaker(np.random.default_rng(0))
    add_binary(maker, code, [(1, 256, 1, 256), (1, 256, 1, 256)], case)
    values = np.arange(256, dtype=np.uint8).view(case["dtype"].numpy) if case["dtype"] is not DType.INT16 else SPREAD
    maker.data[0] = np.broadcast_to(values[:, None], (256, 256)).reshape(1, 256, 1, 256).copy()
    maker.data[1] = np.broadcast_to(values[None, :], (256, 256)).reshape(1, 256, 1, 256).copy()
    maker.check()


PLAIN = {"dtype": DType.INT8, "s0": 0.05, "s1": 0.1, "z0": 3, "z1": -4, "z2": 5, "gain": 1.0, "activation": "NONE"}


def refused(code: str, shapes: Sequence[Sequence[int]] = ((1, 4), (1, 4)), **change: Any) -> str:
    """The reason a plain case with something changed is refused."""
    maker = ModelMaker(np.random.default_rng(0))
    add_binary(maker, code, shapes, PLAIN | change)
    return refusal(maker.model())
