"""transpose_conv2d against LiteRT's reference kernels at 0 LSB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.geometry import SAME, VALID, axis
from openneutron.litert.graph import DType
from tests.golden import ACTIVATIONS, TARGETS, ModelMaker, discriminating, refusal, scales, seeds, spread, zero_points
from tests.sampling import examples


def pairs(high: int) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(1, high), st.integers(1, high))


@st.composite
def transposed(draw: st.DrawFn, wide: bool = False) -> dict[str, Any]:
    """Output size, filter, stride; the input's size follows."""
    dtype = draw(st.sampled_from([DType.INT8, DType.INT8, DType.UINT8]))
    kernel, padding = draw(pairs(5)), draw(st.sampled_from(["SAME", "VALID"]))
    output = draw(pairs(12))
    if padding == "VALID":
        output = (max(output[0], kernel[0]), max(output[1], kernel[1]))
    return {
        "dtype": dtype, "kernel": kernel, "padding": padding, "output": output, "stride": draw(pairs(4)),
        "cin": draw(st.integers(1, 11)), "cout": draw(st.integers(1, 11)), "batch": draw(st.sampled_from([1, 1, 2])),
        "activation": draw(st.sampled_from(ACTIVATIONS[:2] if wide else ACTIVATIONS)),
        "per_channel": draw(st.booleans()), "bias": draw(st.sampled_from(["given", "absent", "-1"])),
        "x_scale": draw(scales()), "x_zero": draw(zero_points(dtype)), "w_scale": draw(scales(-10, -2)),
        "y_zero": draw(zero_points(dtype)),
        # Below 2^-14 LiteRT refuses UINT8 models, whose bias scale then seems to be off.
        "gain": 2.0 ** draw(st.floats(-24 if dtype is DType.INT8 else -14, 10) if wide else st.floats(-2, 2)),
    }  # fmt: skip


def add_transposed(maker: ModelMaker, case: dict[str, Any]) -> None:
    rng, dtype, (kh, kw) = maker.rng, case["dtype"], case["kernel"]
    padding = SAME if case["padding"] == "SAME" else VALID
    image = [
        axis(size, kernel, stride, 1, padding)[0]
        for size, kernel, stride in zip(case["output"], case["kernel"], case["stride"], strict=True)
    ]
    count = case["cout"] if case["per_channel"] and dtype is DType.INT8 else 1
    w_zero = int(rng.integers(0, 256)) if dtype is DType.UINT8 else 0
    weight_scales = (case["w_scale"] * 2.0 ** rng.uniform(-4, 2, count)).astype(np.float32)
    shape = (case["batch"], *case["output"], case["cout"])
    sizes = maker.constant(np.array(shape), DType.INT32)
    w = maker.constant(maker.values((case["cout"], kh, kw, case["cin"]), dtype), dtype, weight_scales, w_zero)
    x = maker.input((case["batch"], *image, case["cin"]), dtype, case["x_scale"], case["x_zero"])
    inputs = [sizes, w, x]
    if case["bias"] == "given":
        bias_scales = [float(np.float32(case["x_scale"] * float(s))) for s in weight_scales]
        inputs.append(maker.constant(rng.integers(-20_000, 20_000, case["cout"]), DType.INT32, bias_scales, 0))
    elif case["bias"] == "-1":
        inputs.append(-1)
    taps = -(-kh // case["stride"][0]) * -(-kw // case["stride"][1])
    out_scale = spread(case["x_scale"], float(np.median(weight_scales)), taps * case["cin"], case["gain"])
    y = maker.output(shape, dtype, out_scale, case["y_zero"])
    maker.op(
        "TRANSPOSE_CONV", inputs, y, padding=case["padding"], stride_h=case["stride"][0], stride_w=case["stride"][1],
        fused_activation_function=case["activation"],
    )  # fmt: skip


@examples(100)
@given(st.lists(transposed(), min_size=1, max_size=12), seeds(), st.sampled_from(TARGETS))
def test_any_transposed(cases: list[dict[str, Any]], seed: int, target: str) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_transposed(maker, case)
    maker.check(target)


@examples(35)
@given(st.lists(transposed(wide=True), min_size=1, max_size=12), seeds())
def test_scales_far_from_the_data(cases: list[dict[str, Any]], seed: int) -> None:
    maker = ModelMaker(np.random.default_rng(seed))
    for case in cases:
        add_transposed(maker, case)
    maker.check()


BASE: dict[str, Any] = {
    "dtype": DType.INT8, "kernel": (3, 3), "padding": "SAME", "output": (12, 12), "stride": (2, 2), "cin": 16,
    "cout": 8, "batch": 1, "activation": "NONE", "per_channel": True, "bias": "given", "x_scale": 0.05, "x_zero": -7,
    "w_scale": 0.01, "y_zero": 9, "gain": 1.0,
}  # fmt: skip

NAMED: dict[str, dict[str, Any]] = {
    "upsample by 2": {},
    "stride larger than the kernel": {"kernel": (2, 2), "stride": (3, 3)},
    "trailing rows that hold only the bias": {"padding": "VALID", "output": (13, 13), "stride": (3, 3)},
    "even kernel": {"kernel": (4, 4), "activation": "RELU"},
    "older converter": {"dtype": DType.UINT8, "x_zero": 128, "y_zero": 100, "activation": "RELU6"},
}


@pytest.mark.parametrize("change", NAMED.values(), ids=NAMED)
def test_named(change: dict[str, Any]) -> None:
    maker = ModelMaker(np.random.default_rng(7))
    add_transposed(maker, BASE | change)
    maker.check()


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
def test_factor_is_rounded_as_the_reference_rounds_it(dtype: DType) -> None:
    maker = ModelMaker(np.random.default_rng(5))
    for _ in range(20):
        x_scale, w_scale, y_scale, accumulators = discriminating(maker.rng)
        count = len(accumulators)
        sizes = maker.constant(np.array((1, 1, 1, count)), DType.INT32)
        w = maker.constant(maker.values((count, 1, 1, 1), dtype), dtype, w_scale, 0)
        x = maker.input((1, 1, 1, 1), dtype, x_scale, 7)
        maker.data[-1][:] = 7
        bias = maker.constant(accumulators, DType.INT32, float(np.float32(x_scale * w_scale)), 0)
        y = maker.output((1, 1, 1, count), dtype, y_scale, 0 if dtype is DType.INT8 else 128)
        maker.op("TRANSPOSE_CONV", [sizes, w, x, bias], y, padding="SAME", stride_h=1, stride_w=1)
    maker.check()


def refused(**change: Any) -> str:
    maker = ModelMaker(np.random.default_rng(1))
    shape = change.get("shape", (1, 8, 8, 3))
    sizes = maker.constant(np.array(shape), DType.INT32)
    w = maker.constant(np.ones(change.get("w_shape", (3, 3, 3, 2))), DType.INT8, 0.5, change.get("w_zero", 0))
    x = maker.input((1, 4, 4, 2), DType.INT8, 0.5, 0)
    bias = maker.constant(np.zeros(3), change.get("bias_dtype", DType.INT32), 0.25, change.get("bias_zero", 0))
    y = maker.output(change.get("y_shape", (1, 8, 8, 3)), DType.INT8, 1.0, 0)
    maker.op("TRANSPOSE_CONV", [sizes, w, x, bias], y, padding="SAME", stride_h=change.get("stride", 2), stride_w=2)
    return refusal(maker.model())


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "another size": ({"stride": 3}, "the window gives [3, 4], the input is [4, 4]"),
    "shape input that differs": ({"shape": (1, 8, 7, 3)}, "the shape input says [1, 8, 7, 3]"),
    "filter of other channels": ({"w_shape": (3, 3, 3, 4)}, "filter [3, 3, 3, 4]"),
    "weights with a zero point": ({"w_zero": 1}, "zero point other than 0"),
    "bias of 64 bits": ({"bias_dtype": DType.INT64}, "bias is int64"),
    "bias with a zero point": ({"bias_zero": 4}, "zero point other than 0"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused(change: dict[str, Any], message: str) -> None:
    assert message in refused(**change)


def test_accepted_before_changes() -> None:
    assert refused() == ""
