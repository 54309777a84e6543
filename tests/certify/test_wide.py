"""Lies about two-byte elements are refused: every kernel of 16 bits, its constants, parameters and places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from openneutron.certify.prove import prove
from openneutron.certify.published import KERNELS
from openneutron.certify.refused import Refused
from openneutron.convert import convert
from openneutron.litert.graph import DType
from openneutron.litert.write import write_model
from openneutron.options import Options
from tests.certify.forge import Blocks, add_to_operand, add_to_parameter, calls, forge_blocks
from tests.golden import ModelMaker

WIDE = DType.INT16


def _filters(maker: ModelMaker, shape: tuple[int, ...], channels: int, axis: int = 0) -> list[int]:
    weights = maker.constant(maker.rng.integers(-127, 128, shape), DType.INT8, np.full(channels, 0.01), axis=axis)
    return [
        weights,
        maker.constant(maker.rng.integers(-99, 99, channels), DType.INT64, np.full(channels, 0.01 * 0.001)),
    ]


def _conv(maker: ModelMaker) -> None:
    x = maker.input((1, 5, 5, 3), WIDE, 0.001, 0)
    maker.op("CONV_2D", [x, *_filters(maker, (4, 3, 3, 3), 4)], maker.output((1, 5, 5, 4), WIDE, 0.01, 0), padding="SAME",
             stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip


def _conv_of_few_channels(maker: ModelMaker) -> None:
    """One that the compiler computes with several pixels merged into one."""
    x = maker.input((1, 9, 16, 3), WIDE, 0.001, 0)
    maker.op("CONV_2D", [x, *_filters(maker, (8, 3, 3, 3), 8)], maker.output((1, 5, 8, 8), WIDE, 0.01, 0), padding="SAME",
             stride_h=2, stride_w=2, dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip


def _depthwise(maker: ModelMaker) -> None:
    x = maker.input((1, 5, 5, 4), WIDE, 0.001, 0)
    maker.op("DEPTHWISE_CONV_2D", [x, *_filters(maker, (1, 3, 3, 4), 4, 3)], maker.output((1, 5, 5, 4), WIDE, 0.01, 0),
             padding="SAME", stride_h=1, stride_w=1, depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1)  # fmt: skip


def _add_transpose_conv(maker: ModelMaker) -> None:
    shape = maker.constant([1, 6, 6, 4], DType.INT32)
    weights, bias = _filters(maker, (4, 2, 2, 3), 4)
    x = maker.input((1, 3, 3, 3), WIDE, 0.001, 0)
    maker.op("TRANSPOSE_CONV", [shape, weights, x, bias], maker.output((1, 6, 6, 4), WIDE, 0.01, 0), padding="SAME",
             stride_h=2, stride_w=2)  # fmt: skip


def _add_fully_connected(maker: ModelMaker) -> None:
    weights = maker.constant(maker.rng.integers(-127, 128, (4, 9)), DType.INT8, 0.01, 0)
    bias = maker.constant(maker.rng.integers(-99, 99, 4), DType.INT64, 0.01 * 0.001, 0)
    x = maker.input((2, 9), WIDE, 0.001, 0)
    maker.op("FULLY_CONNECTED", [x, weights, bias], maker.output((2, 4), WIDE, 0.01, 0))


def _add(maker: ModelMaker) -> None:
    sides = [maker.input((1, 4, 3, 5), WIDE, scale, 0) for scale in (0.001, 0.003)]
    maker.op("ADD", sides, maker.output((1, 4, 3, 5), WIDE, 0.005, 0))


def _softmax(maker: ModelMaker) -> None:
    maker.op("SOFTMAX", [maker.input((2, 9), WIDE, 0.001, 0)], maker.output((2, 9), WIDE, 2.0**-15, 0), beta=1.0)


def _logistic(maker: ModelMaker) -> None:
    maker.op("LOGISTIC", [maker.input((2, 9), WIDE, 0.001, 0)], maker.output((2, 9), WIDE, 2.0**-15, 0))


MODELS: dict[str, Callable[[ModelMaker], None]] = {
    "conv2d16": _conv, "conv2d16 merged": _conv_of_few_channels,
    "depthwise_conv2d16": _depthwise, "transpose_conv2d16": _add_transpose_conv,
    "fully_connected16": _add_fully_connected, "add16": _add, "softmax16": _softmax, "lut16": _logistic,
}  # fmt: skip


def _compile(kernel: str) -> tuple[bytes, bytes]:
    maker = ModelMaker(np.random.default_rng(1))
    MODELS[kernel](maker)
    source = write_model(maker.model())
    return convert(source, Options()).model, source


def _call(blocks: Blocks, kernel: str) -> tuple[int, int]:
    """Byte and operands of the first call of a kernel."""
    return next((at, count) for at, number, count in calls(blocks[0]) if KERNELS[number][0] == kernel)


def test_every_kernel_of_16_bits_is_here() -> None:
    assert {name.split()[0] for name in MODELS} == {name for name, *_ in KERNELS.values() if name.endswith("16")}


def test_a_convolution_of_few_channels_is_merged() -> None:
    maker = ModelMaker(np.random.default_rng(1))
    _conv_of_few_channels(maker)
    assert convert(write_model(maker.model()), Options()).report.passes["merge_pixels"] == 1


@pytest.mark.parametrize("kernel", sorted(MODELS))
def test_honest_files_are_proved(kernel: str) -> None:
    prove(*_compile(kernel))


@pytest.mark.parametrize("kernel", sorted(MODELS))
def test_no_parameter_can_be_changed(kernel: str) -> None:
    compiled, source = _compile(kernel)
    kernel = kernel.split()[0]
    names = next(params for name, _, _, params in KERNELS.values() if name == kernel)
    for number, (name, _) in enumerate(names):

        def change(blocks: Blocks, number: int = number) -> None:
            at, count = _call(blocks, kernel)
            add_to_parameter(blocks[0], at, count, number, 1)

        with pytest.raises(Refused, match=r"byte \d+"):
            prove(forge_blocks(compiled, change), source)
            raise AssertionError(f"{kernel}.{name}")


@pytest.mark.parametrize("kernel", sorted(MODELS))
@pytest.mark.parametrize("step", [1, 2, 16])
def test_no_operand_can_be_moved(kernel: str, step: int) -> None:
    compiled, source = _compile(kernel)
    kernel = kernel.split()[0]
    roles = next(roles for name, _, roles, _ in KERNELS.values() if name == kernel)
    for operand in range(len(roles)):

        def change(blocks: Blocks, operand: int = operand) -> None:
            add_to_operand(blocks[0], _call(blocks, kernel)[0], operand, step)

        with pytest.raises(Refused):
            prove(forge_blocks(compiled, change), source)
            raise AssertionError(f"{kernel} {roles[operand]}")


@pytest.mark.parametrize("kernel", sorted(set(MODELS) - {"add16"}))
def test_constants_are_compared(kernel: str) -> None:
    compiled, source = _compile(kernel)

    def change(blocks: Blocks) -> None:
        blocks[1][0] ^= 1

    with pytest.raises(Refused, match=kernel.split()[0]):
        prove(forge_blocks(compiled, change), source)
