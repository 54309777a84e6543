"""NXP's limits: for each one a case just inside and one just outside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from openneutron.compiler.signature import OpSignature, of_operator
from openneutron.litert import DType, GraphBuilder
from openneutron.machine import targets
from openneutron.nxp.limits import LIMITS, check
from openneutron.verdict import Verdict

RT700 = targets.load("imxrt700")
MCXN = targets.load("mcxn94x")
Shape = Sequence[int]


class Case:
    """One operator with INT8 tensors of given shapes."""

    def __init__(self) -> None:
        self.g = GraphBuilder()

    def act(self, shape: Shape, scale: float = 0.1, zero: int = 0, dtype: DType = DType.INT8) -> int:
        scales = scale if dtype is not DType.FLOAT32 else None
        return self.g.tensor(
            f"t{len(self.g.graph.tensors)}", shape, dtype, scale=scales, zero_point=zero if scales else None
        )

    def const(self, shape: Shape, dtype: DType = DType.INT8) -> int:
        scale = 0.01 if dtype is DType.INT8 else None
        return self.g.tensor(
            f"c{len(self.g.graph.tensors)}", shape, dtype, scale=scale, data=np.zeros(shape, dtype.numpy)
        )

    def ints(self, values: list[Any]) -> int:
        return self.g.tensor(f"i{len(self.g.graph.tensors)}", np.shape(values), DType.INT32, data=values)

    def signature(self, code: str, inputs: list[int], output: int, **options: Any) -> OpSignature:
        return of_operator(self.g.graph, self.g.op(code, inputs, [output], **options))


def conv(
    kernel: Shape, cin: int, *, code: str = "CONV_2D", stride: int = 1, dilation: int = 1, constant: bool = True
) -> OpSignature:
    c = Case()
    shape = (1, *kernel, cin) if code == "DEPTHWISE_CONV_2D" else (8, *kernel, cin)
    weights = c.const(shape) if constant else c.act(shape)
    inputs = [c.act((1, 8, 8, cin)), weights, c.const((8,), DType.INT32)]
    steps = {"stride_h": stride, "stride_w": 1, "dilation_h_factor": dilation, "dilation_w_factor": 1}
    return c.signature(code, inputs, c.act((1, 8, 8, 8)), padding="SAME", **steps)


def unary(code: str, shape: Shape, **options: Any) -> OpSignature:
    c = Case()
    return c.signature(code, [c.act(shape)], c.act(shape), **options)


def binary(code: str, a: Shape, b: Shape, out: Shape, scale: float = 0.1) -> OpSignature:
    c = Case()
    return c.signature(code, [c.act(a), c.act(b, scale)], c.act(out))


def transposed(kernel: Shape, stride: int, inner: Shape, outer: Shape, padding: str = "SAME") -> OpSignature:
    c = Case()
    inputs = [c.ints([1, *outer, 4]), c.const((4, *kernel, 3)), c.act((1, *inner, 3))]
    return c.signature(
        "TRANSPOSE_CONV", inputs, c.act((1, *outer, 4)), padding=padding, stride_h=stride, stride_w=stride
    )


def matmul(shape_a: Shape, shape_b: Shape, zero: int) -> OpSignature:
    c = Case()
    out = (*shape_a[:-1], shape_b[-1])
    return c.signature("BATCH_MATMUL", [c.act(shape_a), c.act(shape_b, zero=zero)], c.act(out))


def resize(before: Shape, after: Shape) -> OpSignature:
    c = Case()
    inputs = [c.act((1, *before, 4)), c.ints(list(after))]
    return c.signature("RESIZE_BILINEAR", inputs, c.act((1, *after, 4)))


def strided(step: int) -> OpSignature:
    c = Case()
    inputs = [c.act((8,)), c.ints([0]), c.ints([8]), c.ints([step])]
    return c.signature("STRIDED_SLICE", inputs, c.act((8 // step,)))


def reshape(shape: Shape) -> OpSignature:
    c = Case()
    return c.signature("RESHAPE", [c.act((16,)), c.ints(list(shape))], c.act(shape))


def mirror(mode: str) -> OpSignature:
    c = Case()
    return c.signature("MIRROR_PAD", [c.act((4,)), c.ints([[1, 1]])], c.act((6,)), mode=mode)


def concat(scale: float) -> OpSignature:
    c = Case()
    return c.signature("CONCATENATION", [c.act((1, 4)), c.act((1, 4), scale)], c.act((1, 8)), axis=1)


def dense(weights: Shape, bias: DType = DType.INT32) -> OpSignature:
    c = Case()
    inputs = [c.act((1, 8)), c.const(weights), c.const((4,), bias)]
    return c.signature("FULLY_CONNECTED", inputs, c.act((1, 4)))


ACCEPTED = {
    "relu": lambda: unary("RELU", (1, 4)),
    "leaky_relu": lambda: unary("LEAKY_RELU", (1, 4), alpha=0.1),
    "convolution at the reduction's limit": lambda: conv((90, 91), 8),
    "convolution": lambda: conv((5, 5), 3),
    "depth-wise": lambda: conv((3, 3), 8, code="DEPTHWISE_CONV_2D"),
    "stride 4096": lambda: conv((1, 1), 8, stride=4096),
    "transposed stride 2": lambda: transposed((2, 2), 2, (4, 4), (8, 8)),
    "softmax of 2040 channels": lambda: unary("SOFTMAX", (1, 2040), beta=1.0),
    "softmax of 4096 positions": lambda: unary("SOFTMAX", (1, 64, 64, 128), beta=1.0),
    "add, one side broadcast": lambda: binary("ADD", (1, 4, 4, 8), (8,), (1, 4, 4, 8)),
    "add with differing scales": lambda: binary("ADD", (4,), (4,), (4,), 0.7),
    "maximum": lambda: binary("MAXIMUM", (4,), (4,), (4,)),
    "bmm": lambda: matmul((2, 3, 4), (2, 4, 5), 0),
    "resize by 8": lambda: resize((2, 2), (16, 16)),
    "slice without steps": lambda: strided(1),
    "reshape to rank 7": lambda: reshape((1, 1, 1, 1, 1, 4, 4)),
    "reflect": lambda: mirror("REFLECT"),
    "concat": lambda: concat(0.1),
    "fully connected": lambda: dense((4, 8)),
}

REFUSED = {
    "taps x channels": (lambda: conv((91, 91), 8), "reduction_bounded", "it is 66248"),
    "kernel": (lambda: conv((4097, 1), 1), "window_bounded", "4097"),
    "stride": (lambda: conv((1, 1), 8, stride=4097), "window_bounded", "4097"),
    "dilation": (lambda: conv((1, 1), 8, dilation=5000), "window_bounded", "5000"),
    "weights at run time": (lambda: conv((3, 3), 8, constant=False), "static_weights", "computed at run time"),
    "transposed stride 3": (lambda: transposed((3, 3), 3, (4, 4), (12, 12)), "transposed_stride", r"stride \[3, 3\]"),
    "transposed stride over kernel": (
        lambda: transposed((1, 1), 2, (4, 4), (8, 8)),
        "transposed_stride",
        r"kernel \[1, 1\]",
    ),
    "transposed kernel": (lambda: transposed((4097, 1), 1, (4, 4), (4100, 4), "VALID"), "transposed_kernel", "4097"),
    "transposed padding": (lambda: transposed((2, 2), 1, (9, 9), (4, 4)), "transposed_padding", r"\[6, 6\]"),
    "softmax channels": (lambda: unary("SOFTMAX", (1, 2041), beta=1.0), "softmax_channels", "2041"),
    "softmax positions": (lambda: unary("SOFTMAX", (4097, 2), beta=1.0), "softmax_positions", "4097"),
    "softmax elements": (lambda: unary("SOFTMAX", (4096, 129), beta=1.0), "softmax_elements", "528384"),
    "both sides broadcast": (lambda: binary("MUL", (4, 1), (1, 4), (4, 4)), "broadcasts_one_side", r"\[4, 4\]"),
    "maximum rescales": (lambda: binary("MAXIMUM", (4,), (4,), (4,), 0.2), "same_quantization", "0.2"),
    "concat rescales": (lambda: concat(0.3), "same_quantization", "0.3"),
    "bmm of rank 4": (lambda: matmul((1, 2, 3, 4), (1, 2, 4, 5), 0), "three_dimensions", r"\[4, 4\]"),
    "bmm zero point": (lambda: matmul((2, 3, 4), (2, 4, 5), 7), "zero_points_are_zero", r"\[0, 7\]"),
    "resize by 3": (lambda: resize((2, 2), (6, 6)), "resize_factor", r"\[6, 6\]"),
    "resize down": (lambda: resize((4, 4), (2, 2)), "resize_factor", r"\[2, 2\]"),
    "steps": (lambda: strided(2), "unit_steps", r"\[2\]"),
    "rank 8": (lambda: reshape((1, 1, 1, 1, 1, 1, 4, 4)), "plain_reshape", "8 dimensions"),
    "symmetric": (lambda: mirror("SYMMETRIC"), "reflects", "symmetric"),
    "bias type": (lambda: dense((4, 8), DType.INT64), "static_bias", "int64"),
    "no such operator": (lambda: unary("GELU", (1, 4)), "nxp_unknown_operator", "GELU"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert check(ACCEPTED[name](), RT700) == Verdict()


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_code_value_and_place(name: str) -> None:
    make, code, message = REFUSED[name]
    signature = make()
    reason = check(signature, RT700).reason
    assert reason is not None and reason.code == code
    assert re.search(message, reason.message)
    assert reason.where == signature.outputs[0].name


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT16, DType.FLOAT32])
def test_only_int8_activations(dtype: DType) -> None:
    c = Case()
    reason = check(c.signature("RELU", [c.act((4,), dtype=dtype)], c.act((4,))), RT700).reason
    assert reason is not None and reason.code == "known_activations" and str(dtype) in reason.message


def test_the_reduction_counts_in_the_target_s_own_dot_product_length() -> None:
    # 3 channels fill 8 lanes on imxrt700 but only 4 on mcxn94x.
    signature = conv((91, 91), 3)
    assert not check(signature, RT700)
    assert check(signature, MCXN)


def test_a_target_may_be_given_by_name_even_one_without_public_figures() -> None:
    signature = conv((91, 91), 3)
    assert not check(signature, "imxrt700")
    assert check(signature, "mcxn94x")
    assert not check(signature, "imx943")


def test_every_limit_has_a_rule_users_can_read() -> None:
    for code, limits in LIMITS.items():
        assert limits, code
        assert all(limit.rule and limit.code for limit in limits)


@pytest.mark.parametrize(
    ("target", "code", "taken"),
    [("imxrt700", "ADD", True), ("imxrt700", "LOGISTIC", False), ("mcxn94x", "ADD", False), ("imx95", "ADD", False)],
)
def test_16_bits_where_nxp_lists_them(target: str, code: str, taken: bool) -> None:
    """i.MX RT700 runs some operators with 16-bit activations, MCX N two, of the others nothing is said."""
    c = Case()
    count = 2 if code == "ADD" else 1
    inputs = [c.act((1, 4, 4, 8), dtype=DType.INT16) for _ in range(count)]
    verdict = check(c.signature(code, inputs, c.act((1, 4, 4, 8), dtype=DType.INT16)), targets.load(target))
    assert bool(verdict) is taken, str(verdict.reason)


@pytest.mark.parametrize("code", LIMITS)
def test_an_operator_that_makes_nothing_is_not_taken(code: str) -> None:
    assert check(OpSignature(code, (), (), None), RT700).reason is not None
