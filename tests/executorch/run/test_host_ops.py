"""The host kernels of `cortex_m::*` against the operators' Python references: equal to the bit, whatever the dim order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.cortex_m.backend_parts import cortex_m_backend
from openneutron.executorch.run.runtime import load_program, register_runtime

Call = tuple[Callable[..., torch.Tensor], tuple[Any, ...]]

cortex_m_backend(where="tests")
import executorch.backends.cortex_m.ops.operators  # noqa: E402, F401

ops = torch.ops.cortex_m


class Calls(nn.Module):
    """Independent calls side by side; tensors are inputs, everything else is part of the program."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left = iter(tensors)
        return tuple(
            call(*(next(left) if isinstance(value, torch.Tensor) else value for value in arguments))
            for call, arguments in self.calls
        )


def run(calls: list[Call]) -> tuple[torch.Tensor, ...]:
    """Results of the runtime, call by call."""
    from executorch.exir import EdgeCompileConfig, to_edge

    inputs = tensors(calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(Calls(calls).eval(), inputs)
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        return load_program(bytes(edge.to_executorch().buffer)).run(*inputs)


def tensors(calls: list[Call]) -> tuple[torch.Tensor, ...]:
    return tuple(value for _, arguments in calls for value in arguments if isinstance(value, torch.Tensor))


def both(calls: list[Call]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Results of the runtime and of the references, call by call."""
    return list(zip(run(calls), Calls(calls)(*tensors(calls)), strict=True))


def check(calls: list[Call]) -> None:
    for position, (got, wanted) in enumerate(both(calls)):
        name = f"call {position}: {calls[position][0]}"
        assert got.shape == wanted.shape and got.dtype == wanted.dtype, name
        assert torch.equal(got, wanted), f"{name}: {int((got != wanted).sum())} of {got.numel()} differ"


def int8(*shape: int, last: bool = False) -> torch.Tensor:
    made = torch.randint(-128, 128, shape, dtype=torch.int8)
    return made.to(memory_format=torch.channels_last) if last else made


def number(low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, ()))


def multiplier() -> int:
    return number(1 << 30, (1 << 31) - 1)


def scales(count: int, low: int = -12, high: int = -4) -> tuple[torch.Tensor, torch.Tensor]:
    many = torch.randint(1 << 30, (1 << 31) - 1, (count,), dtype=torch.int64).to(torch.int32)
    return many, torch.randint(low, high + 1, (count,), dtype=torch.int32)


def scratch() -> torch.Tensor:
    return torch.zeros(4, dtype=torch.uint8)


def add(a: torch.Tensor, b: torch.Tensor) -> Call:
    sign = 1 if number(0, 1) else -1
    first = (a, number(-128, 127), multiplier(), number(-8, 0))
    second = (b, number(-128, 127), sign * multiplier(), number(-8, 0))
    return ops.quantized_add, (*first, *second, number(-128, 127), multiplier(), number(-20, -14), -128, number(0, 127))


def mul(a: torch.Tensor, b: torch.Tensor) -> Call:
    values = (a, number(-128, 127), b, number(-128, 127), number(-128, 127), multiplier(), number(-9, 2))
    return ops.quantized_mul, values


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_every_operator_of_the_backend_has_a_kernel() -> None:
    from executorch.runtime import Runtime

    register_runtime()
    schemas = {s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("cortex_m::")}
    wanted = {f"{name}.out" for name in schemas}
    assert len(wanted) == 23
    assert wanted <= set(Runtime.get().operator_registry.operator_names)


def test_add_and_mul_in_any_layout() -> None:
    shapes = [(7,), (3, 5), (1, 3, 4, 5), (2, 1, 4, 4), (1, 6, 1, 1)]
    calls = [make(int8(*shape), int8(*shape)) for make in (add, mul) for shape in shapes for _ in range(3)]
    calls += [make(int8(1, 6, 4, 5, last=True), int8(1, 6, 4, 5, last=True)) for make in (add, mul)]
    calls += [make(int8(1, 6, 4, 5, last=True), int8(1, 6, 1, 1)) for make in (add, mul)]
    calls += [make(int8(1, 6, 1, 1), int8(1, 6, 4, 5, last=True)) for make in (add, mul)]
    check(calls)


def test_add_with_a_left_shift() -> None:
    a, b = int8(64), int8(64)
    check([(ops.quantized_add, (a, 0, 1 << 30, 0, b, 3, 1 << 30, -1, 5, (1 << 31) - 1, 1 - 19, -100, 100))])


def test_div_including_zero_divisors_and_int16() -> None:
    calls: list[Call] = []
    for zero in (-128, -3, 0, 127):
        calls.append(
            (ops.quantized_div, (int8(4, 33), zero, int8(4, 33), zero, number(-128, 127), 0.37 * (1 + zero * zero)))
        )
    short = torch.randint(-32768, 32768, (200,), dtype=torch.int16)
    calls.append((ops.quantized_div, (short, 0, short.flip(0), 0, 0, 1234.5)))
    check(calls)


def test_activation_minimum_and_maximum() -> None:
    table = int8(256)
    x, y = int8(2, 3, 4, 5, last=True), int8(2, 3, 4, 5, last=True)
    calls: list[Call] = [(ops.quantized_activation, (x, table)), (ops.quantized_activation, (int8(300), table))]
    calls += [
        (ops.minimum, (x, y)),
        (ops.maximum, (x, y)),
        (ops.minimum, (int8(9), int8(1))),
        (ops.maximum, (int8(9), int8(1))),
    ]
    calls += [(ops.maximum, (int8(2, 1, 5), int8(3, 1)))]
    check(calls)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16], ids=str)
def test_quantize_and_dequantize(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    x = torch.cat([torch.randn(500) * 3, torch.tensor([0.0, -0.0, 1e9, -1e9, 0.5, 1.5, 2.5])])
    image = torch.randn(1, 3, 4, 5).to(memory_format=torch.channels_last)
    calls: list[Call] = []
    for scale, zero in ((0.0123, -7), (1.0, 0), (0.3, 127)):
        tail = (scale, zero, info.min, info.max, dtype)
        calls += [(ops.quantize_per_tensor, (x, *tail)), (ops.quantize_per_tensor, (image, *tail))]
        stored = torch.randint(info.min, info.max + 1, (2, 3, 4, 5), dtype=dtype).to(memory_format=torch.channels_last)
        calls.append((ops.dequantize_per_tensor, (stored, *tail)))
    check(calls)


def test_linear_with_bias_and_with_kernel_sums() -> None:
    calls: list[Call] = []
    for shape in ((1, 17), (3, 17), (2, 3, 17)):
        bias = torch.randint(-50000, 50000, (5,), dtype=torch.int32)
        for first, second in ((bias, None), (None, bias[None]), (None, None)):
            tail = (number(-127, 128), 0, number(-128, 127), [multiplier()], [number(-12, -4)], 127, number(-128, 0))
            calls.append((ops.quantized_linear, (int8(*shape), int8(5, 17), first, second, *tail)))
    check(calls)


def test_batch_matmul() -> None:
    calls: list[Call] = []
    for batch, rows, inner, columns in ((1, 1, 1, 1), (2, 3, 17, 5), (4, 8, 64, 7)):
        tail = (number(-128, 127), multiplier(), number(-12, -4), scratch())
        calls.append(
            (
                ops.quantized_batch_matmul,
                (int8(batch, rows, inner), number(-127, 128), int8(batch, columns, inner), number(-127, 128), *tail),
            )
        )
    check(calls)


def test_transpose_and_pad() -> None:
    calls: list[Call] = [
        (ops.transpose, (int8(2, 3, 4, 5), [0, 2, 3, 1])), (ops.transpose, (int8(2, 3, 4, 5), [3, 2, 1, 0])),
        (ops.transpose, (int8(3, 4), [1, 0])), (ops.transpose, (int8(2, 3, 4), [1, 0, 2])),
        (ops.pad, (int8(2, 3, 4, 5), [0, 1, 2, 3], [1, 0, 2, 1], -5)), (ops.pad, (int8(4, 5), [0, 0, 2, 3], [0, 0, 2, 1], 7)),
        (ops.pad, (int8(6), [0, 0, 0, 3], [0, 0, 0, 1], -128)),
        (ops.pad, (int8(1, 3, 4, 5, last=True), [0, 1, 2, 0], [0, 1, 2, 1], 9)),
        (ops.pad, (int8(1, 1, 4, 5), [0, 1, 2, 0], [0, 2, 1, 0], 3)),
        (ops.pad, (int8(1, 4, 1, 1), [0, 1, 2, 0], [0, 2, 1, 0], 3)),
    ]  # fmt: skip
    check(calls)


def conv(nhwc: bool, n: int, c: int, h: int, w: int, o: int, k: int, groups: int = 1, **window: int) -> Call:
    x = int8(n, h, w, c) if nhwc else int8(n, c, h, w, last=True)
    weight = int8(o, k, k, c // groups)
    bias = torch.randint(-9999, 9999, (o,), dtype=torch.int32) if number(0, 1) else None
    pairs = [[window.get(name, default)] * 2 for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))]
    target = ops.quantized_conv2d_nhwc if nhwc else ops.quantized_conv2d
    return target, (
        x,
        weight,
        bias,
        *pairs,
        number(-127, 128),
        number(-128, 127),
        *scales(o),
        -128,
        number(0, 127),
        scratch(),
    )


def depthwise(nhwc: bool, c: int, h: int, w: int, m: int, k: int, stride: int, padding: int) -> Call:
    x = int8(1, h, w, c) if nhwc else int8(1, c, h, w, last=True)
    bias = torch.randint(-9999, 9999, (c * m,), dtype=torch.int32)
    target = ops.quantized_depthwise_conv2d_nhwc if nhwc else ops.quantized_depthwise_conv2d
    window = ([stride] * 2, [padding] * 2, [1, 1], m)
    return target, (x, int8(1, k, k, c * m), bias, *window, number(-127, 128), 3, *scales(c * m), -128, 127, scratch())


@pytest.mark.parametrize("nhwc", [False, True], ids=["channels_last", "nhwc"])
def test_convolutions(nhwc: bool) -> None:
    calls = [
        conv(nhwc, 1, 3, 7, 9, 5, 3, padding=1), conv(nhwc, 2, 4, 8, 6, 6, 3, stride=2), conv(nhwc, 1, 1, 5, 5, 2, 1),
        conv(nhwc, 1, 6, 9, 9, 4, 3, 2, padding=2), conv(nhwc, 1, 2, 1, 1, 3, 3, padding=1),
        depthwise(nhwc, 5, 7, 6, 1, 3, 1, 1), depthwise(nhwc, 3, 8, 8, 2, 3, 2, 0), depthwise(nhwc, 1, 4, 4, 4, 2, 1, 0),
    ]  # fmt: skip
    check(calls)


def test_dilation_equals_a_larger_kernel_with_holes() -> None:
    """torch has no dilated INT32 convolution, so the reference cannot run one itself."""
    target, (x, weight, bias, stride, padding, _, *rest) = conv(True, 1, 4, 9, 9, 3, 3, padding=2, dilation=2)
    wide = torch.zeros(3, 5, 5, 4, dtype=torch.int8)
    wide[:, ::2, ::2] = weight
    dilated, holes = run(
        [
            (target, (x, weight, bias, stride, padding, [2, 2], *rest)),
            (target, (x, wide, bias, stride, padding, [1, 1], *rest)),
        ]
    )
    assert torch.equal(dilated, holes)


@pytest.mark.parametrize("nhwc", [False, True], ids=["channels_last", "nhwc"])
def test_transposed_convolutions(nhwc: bool) -> None:
    calls: list[Call] = []
    for c, o, k, stride, padding in ((3, 5, 3, 2, 1), (1, 1, 2, 2, 0), (4, 2, 4, 1, 2)):
        x = int8(1, 4, 5, c) if nhwc else int8(1, c, 4, 5, last=True)
        bias = torch.randint(-9999, 9999, (o,), dtype=torch.int32)
        target = ops.quantized_transpose_conv2d_nhwc if nhwc else ops.quantized_transpose_conv2d
        window = ([stride] * 2, [padding] * 2, [0, 0], [1, 1])
        calls.append((target, (x, int8(o, k, k, c), bias, *window, 5, -9, *scales(o), -128, 127, scratch(), scratch())))
    check(calls)


@pytest.mark.parametrize("nhwc", [False, True], ids=["channels_last", "nhwc"])
def test_pooling(nhwc: bool) -> None:
    calls: list[Call] = []
    for c, h, w, k, stride, padding, ceil in (
        (3, 8, 8, 2, 2, 0, False),
        (5, 9, 7, 3, 2, 1, False),
        (2, 9, 9, 3, 2, 0, True),
        (1, 6, 6, 6, 6, 0, False),
    ):
        x = int8(1, h, w, c) if nhwc else int8(1, c, h, w, last=True)
        window = ([k, k], [stride, stride], [padding, padding])
        average = ops.quantized_avg_pool2d_nhwc if nhwc else ops.quantized_avg_pool2d
        largest = ops.quantized_max_pool2d_nhwc if nhwc else ops.quantized_max_pool2d
        for _ in range(4):
            calls.append((average, (x, *window, ceil, number(-128, 127), multiplier(), number(-9, 0), scratch())))
        if not ceil:
            calls.append((largest, (x, *window, [1, 1], False, 3, 3, -100, number(0, 127))))
    check(calls)


def test_softmax_differs_only_where_the_references_float_rounding_decides() -> None:
    calls: list[Call] = []
    for shape, dim in (((40, 10), 1), ((1, 1000), -1), ((8, 5, 6), 1), ((2, 7, 3, 3), 1)):
        for shift in (20, 22, 24):
            calls.append((ops.softmax, (int8(*shape), dim, number(-128, 127), -128, multiplier(), shift, -100)))
    total, wrong = 0, 0
    for got, wanted in both(calls):
        apart = (got.int() - wanted.int()).abs()
        assert int(apart.max()) <= 1
        total, wrong = total + got.numel(), wrong + int((apart > 0).sum())
    assert wrong <= total // 10_000, f"{wrong} of {total} differ"


def test_a_damaged_program_is_refused_with_a_sentence() -> None:
    """A list that is too short and a shape that does not fit must not reach the loops."""
    from executorch.exir import EdgeCompileConfig, to_edge

    from openneutron.errors import OpenNeutronError

    module = Calls([(ops.transpose, (int8(2, 3), [1, 0]))])
    edge = to_edge(
        torch.export.export(module, (int8(2, 3),)), compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    manager = edge.to_executorch()
    plan = manager.executorch_program.execution_plan[0]
    for value in plan.values:
        items = getattr(value.val, "items", None)
        if isinstance(items, list) and len(items) == 2:
            items[0], items[1] = items[0], items[0]
    from executorch.exir._serialize._program import PTEFile, serialize_pte_binary

    data = bytes(serialize_pte_binary(PTEFile(manager.executorch_program)))
    with pytest.raises(OpenNeutronError, match=r"cortex_m::transpose: the order is no permutation"):
        load_program(data).run(int8(2, 3))
