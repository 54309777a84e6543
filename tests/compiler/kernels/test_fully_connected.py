"""fully_connected against LiteRT's reference kernels at 0 LSB: double arithmetic there, proved integers here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, TARGETS, ModelMaker, discriminating, refusal, scales, seeds, spread, zero_points
from tests.sampling import examples


@st.composite
def layers(draw: st.DrawFn, wide: bool = False) -> dict[str, Any]:
    dtype = draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8]))
    inputs = draw(st.integers(1, 40))
    keep = draw(st.booleans())
    lead = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    return {
        "dtype": dtype, "inputs": inputs, "outputs": draw(st.integers(1, 20)), "keep": keep, "lead": tuple(lead),
        "activation": draw(st.sampled_from(ACTIVATIONS[:2] if wide else ACTIVATIONS)),
        "per_channel": draw(st.booleans()), "bias": draw(st.sampled_from(["given", "absent", "-1"])),
        "x_scale": draw(scales()), "x_zero": draw(zero_points(dtype)), "w_scale": draw(scales(-10, -2)),
        "w_zero": draw(st.booleans()), "y_zero": draw(zero_points(dtype)),
        "gain": 2.0 ** draw(st.floats(-4, 16) if wide else st.floats(-2, 2)), "ties": draw(st.booleans()),
    }  # fmt: skip


def add_layer(maker: ModelMaker, case: dict[str, Any]) -> None:
    rng, dtype = maker.rng, case["dtype"]
    outputs, inputs = case["outputs"], case["inputs"]
    count = outputs if case["per_channel"] and dtype is DType.INT8 else 1
    weight_scales = (case["w_scale"] * 2.0 ** rng.uniform(-4, 2, count)).astype(np.float32)
    x_scale = case["x_scale"]
    out_scale = spread(x_scale, float(np.median(weight_scales)), inputs, case["gain"])
    if case["ties"]:
        # Factors of few bits make many accumulators land exactly on a half.
        x_scale, out_scale = 2.0 ** round(math.log2(x_scale)), 2.0 ** round(math.log2(out_scale))
        weight_scales = (case["w_scale"] * 0 + rng.integers(1, 64, count) * 2.0**-12).astype(np.float32)
    limits = np.iinfo(dtype.numpy)
    w_zero = int(rng.integers(limits.min, limits.max)) if count == 1 and case["w_zero"] else 0
    flat = (*case["lead"], inputs)
    x = maker.input(flat, dtype, x_scale, case["x_zero"])
    w = maker.constant(maker.values((outputs, inputs), dtype), dtype, weight_scales, w_zero)
    operands = [x, w]
    if case["bias"] == "given":
        bias_scales = [float(np.float32(x_scale * float(s))) for s in weight_scales]
        operands.append(maker.constant(rng.integers(-20_000, 20_000, outputs), DType.INT32, bias_scales, 0))
    elif case["bias"] == "-1":
        operands.append(-1)
    shape = (*case["lead"], outputs) if case["keep"] else (math.prod(case["lead"]), outputs)
    y = maker.output(shape, dtype, out_scale, case["y_zero"])
    maker.op("FULLY_CONNECTED", operands, y, keep_num_dims=case["keep"], fused_activation_function=case["activation"])


@examples(100)
@given(st.lists(layers(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_layer(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_layer(maker, case)
    maker.check(target)


@examples(35)
@given(st.lists(layers(wide=True), min_size=1, max_size=12), seeds())
def test_scales_far_from_the_data(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_layer(maker, case)
    maker.check()


BASE: dict[str, Any] = {
    "dtype": DType.INT8, "inputs": 64, "outputs": 10, "keep": False, "lead": (1,), "activation": "NONE",
    "per_channel": True, "bias": "given", "x_scale": 0.05, "x_zero": -7, "w_scale": 0.01, "w_zero": False, "y_zero": 9,
    "gain": 1.0, "ties": False,
}  # fmt: skip

NAMED: dict[str, dict[str, Any]] = {
    "classifier": {"inputs": 512},
    "thousand classes": {"inputs": 96, "outputs": 1000},
    "ties everywhere": {"ties": True, "outputs": 200, "lead": (4,)},
    "batch of vectors, dimensions kept": {"lead": (2, 3, 4), "keep": True},
    "weights with a zero point": {"per_channel": False, "w_zero": True},
    "older converter": {"dtype": DType.UINT8, "x_zero": 128, "y_zero": 100, "w_zero": True},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any], target: str) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_layer(maker, BASE | change)
    maker.check(target)


@pytest.mark.parametrize("divisor", [49, 103, 107, 161])
def test_factors_that_no_multiplier_replaces(divisor: int) -> None:
    """Output scales of divisor / 64: the double product reaches some halves and misses others."""
    maker = ModelMaker(np.random.default_rng(divisor))
    x = maker.input((200, 32), DType.INT8, 1 / 16, 0)
    w = maker.constant(maker.rng.integers(-127, 128, (64, 32)), DType.INT8, 1 / 64, 0)
    # Every accumulator is a multiple of half an output step: the bias puts it on one, inputs of 0 leave it there.
    halves = (2 * np.arange(64) - 63) * 8 * divisor
    bias = maker.constant(halves, DType.INT32, 1 / 1024, 0)
    maker.data[0][:100] = 0
    maker.op("FULLY_CONNECTED", [x, w, bias], maker.output((200, 64), DType.INT8, divisor / 64, 0))
    maker.check()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_factor_is_rounded_as_the_reference_rounds_it(dtype: DType) -> None:
    maker = ModelMaker(np.random.default_rng(5))
    for steps in (10, 16, 22) * 7:
        x_scale, w_scale, y_scale, accumulators = discriminating(maker.rng, steps)
        x = maker.input((1, 1), dtype, x_scale, 7)
        maker.data[-1][:] = 7
        w = maker.constant(maker.values((len(accumulators), 1), dtype), dtype, w_scale, 0)
        bias = maker.constant(accumulators, DType.INT32, float(np.float32(x_scale * w_scale)), 0)
        y = maker.output((1, len(accumulators)), dtype, y_scale, 0 if dtype is DType.INT8 else 128)
        maker.op("FULLY_CONNECTED", [x, w, bias], y)
    maker.check()


def test_input_is_flattened() -> None:
    maker = ModelMaker(np.random.default_rng(2))
    x = maker.input((2, 3, 4, 5), DType.INT8, 0.1, 3)
    w = maker.constant(maker.values((7, 60), DType.INT8), DType.INT8, 0.02, 0)
    maker.op("FULLY_CONNECTED", [x, w], maker.output((2, 7), DType.INT8, 0.7, -4))
    maker.check()


def refused(**change: Any) -> str:
    maker = ModelMaker(np.random.default_rng(1))
    x = maker.input((2, 6), DType.INT8, 0.5, 0)
    w = maker.constant(
        np.ones(change.get("w_shape", (3, 6))), DType.INT8, change.get("w_scale", 0.5), change.get("w_zero", 0),
        change.get("w_axis", 0),
    )  # fmt: skip
    bias = maker.constant(np.zeros(3), change.get("bias_dtype", DType.INT32), change.get("bias_scale", 0.25), 0)
    y = maker.output(change.get("y_shape", (2, 3)), DType.INT8, change.get("y_scale", 1.0), 0)
    inputs = [x, w, bias] if change.get("bias", True) else [x, w]
    maker.op("FULLY_CONNECTED", inputs, y, **change.get("options", {}))
    return refusal(maker.model())


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "weights of three dimensions": ({"w_shape": (3, 2, 3)}, "weights are [3, 2, 3]"),
    "weights of another depth": ({"w_shape": (3, 5)}, "weights [3, 5]"),
    "another output": ({"y_shape": (2, 4)}, "output [2, 4]"),
    "bias of 64 bits": ({"bias_dtype": DType.INT64}, "bias is int64"),
    "bias at another scale": ({"bias_scale": 0.5}, "off by 0.25 output steps"),
    "scales along the depth": (
        {"w_shape": (3, 3), "w_scale": [0.5] * 3, "w_axis": 1}, "input [2, 6], weights [3, 3]",
    ),
    "per-channel weights with a zero point": ({"w_scale": [0.5] * 3, "w_zero": 1}, "have a zero point"),
    "shuffled weights": ({"options": {"weights_format": 1}}, "shuffled"),
    "kept dimensions of another depth": (
        {"w_shape": (3, 4), "y_shape": (3, 3), "options": {"keep_num_dims": True}}, "keep_num_dims",
    ),
    "a result beyond INT32": ({"y_scale": 1e-5, "bias": False}, "INT32 output steps"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(change: dict[str, Any], message: str) -> None:
    assert message in refused(**change)


def test_accepted_before_changes() -> None:
    assert refused() == ""
