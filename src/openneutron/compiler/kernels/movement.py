"""Limits and helpers shared by the operators that move values of 8 or 16 bits without changing them."""

from __future__ import annotations

from math import prod

import numpy as np

from openneutron.compiler.kernels.common import ACTIVATIONS, BYTES
from openneutron.compiler.legalizer import shape4
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no

Shape4 = tuple[int, int, int, int]
INDICES = (DType.INT32, DType.INT64)  # of positions and tokens, which some operators put together


@limit("input and output must be INT8, UINT8 or INT16, of one type")
def same_moved_type(op: OpSignature, target: Target) -> Verdict:
    x = op.input(0)
    return OK if x is None else _one_type((x, *op.outputs), ACTIVATIONS)


@limit("input and output must be INT8 or UINT8, of one type")
def same_byte_type(op: OpSignature, target: Target) -> Verdict:
    x = op.input(0)
    return OK if x is None else _one_type((x, *op.outputs), BYTES)


@limit("all inputs and the output must be INT8, UINT8 or INT16, of one type")
def all_moved_type(op: OpSignature, target: Target) -> Verdict:
    if not op.inputs or any(tensor is None for tensor in op.inputs):
        return no("a required input is absent")
    return _one_type((*(t for t in op.inputs if t is not None), *op.outputs), ACTIVATIONS)


@limit("input and output must be INT8, UINT8, INT16, or INT32 or INT64 indices, of one type")
def same_moved_or_index_type(op: OpSignature, target: Target) -> Verdict:
    x = op.input(0)
    return OK if x is None else _one_type((x, *op.outputs), (*ACTIVATIONS, *INDICES))


@limit("all inputs and the output must be INT8, UINT8, INT16, or INT32 or INT64 indices, of one type")
def all_moved_or_index_type(op: OpSignature, target: Target) -> Verdict:
    if not op.inputs or any(tensor is None for tensor in op.inputs):
        return no("a required input is absent")
    return _one_type((*(t for t in op.inputs if t is not None), *op.outputs), (*ACTIVATIONS, *INDICES))


def _one_type(tensors: tuple[TensorSignature, ...], types: tuple[DType, ...]) -> Verdict:
    for tensor in tensors:
        if tensor.dtype not in types:
            return no(
                f"tensor {tensor.name!r} is {tensor.dtype}", hint=f"LiteRT and the NPU move {_list_types(types)} here"
            )
        if tensor.dtype is not tensors[-1].dtype:
            return no(f"tensor {tensor.name!r} is {tensor.dtype}, the output {tensors[-1].dtype}")
    return OK


def _list_types(types: tuple[DType, ...]) -> str:
    return " and ".join(str(one).upper() for one in types)


def same_q(a: TensorSignature, b: TensorSignature) -> bool:
    """Return whether two tensors have equal scale and zero point."""
    return (a.scale, a.zero_point) == (b.scale, b.zero_point)


@limit("input and output must have the same scale and zero point")
def same_quantization(op: OpSignature, target: Target) -> Verdict:
    y = op.outputs[0]
    for x in op.inputs:
        if x is not None and x.dtype in ACTIVATIONS and not same_q(x, y):
            return no(
                f"{x.name!r} is {x.scale:g}/{x.zero_point}, the output {y.scale:g}/{y.zero_point}",
                hint="insert a QUANTIZE in front",
            )
    return OK


def numbers(op: OpSignature, position: int) -> list[int] | None:
    """Return the values of a small constant integer input, flattened; None when they are not known."""
    tensor = op.input(position)
    if tensor is None or tensor.values is None:
        return None
    return [int(v) for v in np.asarray(tensor.values).reshape(-1)]


def known_numbers(op: OpSignature, *positions: int) -> Verdict:
    """Rejects an operator whose shape arguments are computed at run time."""
    for position in positions:
        if numbers(op, position) is None:
            tensor = op.input(position)
            return no(f"input {position} ({tensor.name if tensor else 'absent'!r}) is not a constant")
    return OK


@limit("the second input must be a constant")
def constant_argument(op: OpSignature, target: Target) -> Verdict:
    return known_numbers(op, 1)


@limit("the second and third inputs must be constants")
def constant_arguments(op: OpSignature, target: Target) -> Verdict:
    return known_numbers(op, 1, 2)


def around(shape: tuple[int, ...], axis: int) -> Shape4:
    """Return [1, everything before the axis, the axis, everything after it]."""
    return 1, prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def fold_around(shape: tuple[int, ...], axis: int) -> tuple[Shape4, int]:
    """Return a 4-D form of the shape that keeps `axis` a dimension of its own, and its position there."""
    if len(shape) <= 4:
        return shape4(shape), axis + 4 - len(shape)
    return around(shape, axis), 2
