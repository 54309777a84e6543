"""Checks that apply to every operator, before any kernel's own limits: number of inputs and outputs, sizes, scales.

Kernels and limits read these positions without checking them again, so a malformed file must be refused here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import Reason

_ANY = 1 << 16  # no upper bound
# A streamed tensor is held a few rows at a time. If it is more than 16 times the memory, hardly one row would fit.
_STREAMED = 16
_LEAST_SCALE = 2.0**-126  # the smallest normal float32
# Operators whose weights may have negative scales: their multipliers carry the sign.
_SIGNED_SCALES = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})


class Arity(NamedTuple):
    """Fewest and most inputs, the positions that may be absent (-1), and the most outputs."""

    least: int
    most: int
    optional: tuple[int, ...] = ()
    outputs: int = 1


def _each(names: str, arity: Arity) -> dict[str, Arity]:
    return dict.fromkeys(names.split(), arity)


ARITIES: dict[str, Arity] = {
    **_each(
        "ABS AVERAGE_POOL_2D DEPTH_TO_SPACE ELU EXP GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAX_POOL_2D NEG QUANTIZE RELU "
        "RELU6 RELU_0_TO_1 RELU_N1_TO_1 RSQRT SOFTMAX SPACE_TO_DEPTH SQRT SQUEEZE TANH",
        Arity(1, 1),
    ),
    **_each(
        "ADD ARG_MAX ARG_MIN BATCH_MATMUL DIV EMBEDDING_LOOKUP EXPAND_DIMS GATHER GATHER_ND MAXIMUM MEAN MINIMUM MIRROR_PAD "
        "MUL PAD PRELU REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SQUARED_DIFFERENCE SUB SUM TILE "
        "TRANSPOSE",
        Arity(2, 2),
    ),
    **_each("BATCH_TO_SPACE_ND DYNAMIC_UPDATE_SLICE PADV2 SLICE SPACE_TO_BATCH_ND", Arity(3, 3)),
    **_each("CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED", Arity(2, 3, optional=(2,))),
    **_each("CONCATENATION PACK", Arity(1, _ANY)),
    "ASSIGN_VARIABLE": Arity(2, 2, outputs=0),
    "READ_VARIABLE": Arity(1, 1),
    "VAR_HANDLE": Arity(0, 0),
    "SVDF": Arity(5, 5, optional=(3,)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Arity(20, 24, optional=(1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23)),
    "RESHAPE": Arity(1, 2, optional=(1,)),
    "SPLIT": Arity(2, 2, outputs=_ANY),
    "SPLIT_V": Arity(3, 3, outputs=_ANY),
    "STABLEHLO_COMPOSITE": Arity(1, _ANY, outputs=_ANY),
    "STRIDED_SLICE": Arity(4, 4),
    "TRANSPOSE_CONV": Arity(3, 4, optional=(3,)),
    "UNPACK": Arity(1, 1, outputs=_ANY),
}


def check_operands(signature: OpSignature, target: Target, *, streams: bool = False) -> Reason | None:
    """Return why no kernel can run this operator, or None where the limits of its kernel decide.

    With `streams` tensors may be larger than the memory: the caller then checks whether they can be streamed.

    Example:
        >>> check_operands(of_operator(graph, graph.operators[0]), targets.load("imxrt700"))
    """
    room = target.sram_bytes * (_STREAMED if streams else 1)
    return _check_arity(signature) or _check_sizes(signature, target, room) or _check_scales(signature)


def _check_arity(signature: OpSignature) -> Reason | None:
    """Return why the number of inputs or outputs is wrong for this operator, or None."""
    arity = ARITIES.get(signature.code)
    if arity is None:
        return None
    given, made = len(signature.inputs), len(signature.outputs)
    problem = ""
    if not arity.least <= given <= arity.most:
        wanted = f"{arity.least}" if arity.least == arity.most else f"{arity.least} to {arity.most}"
        problem = f"{given} inputs are given, {signature.code} takes {wanted}"
    elif not min(1, arity.outputs) <= made <= arity.outputs:
        problem = f"{made} outputs are given, {signature.code} has {'one' if arity.outputs == 1 else 'at least one'}"
    else:
        absent = [at for at, one in enumerate(signature.inputs) if one is None and at not in arity.optional]
        if absent:
            problem = f"input {absent[0]} is absent, {signature.code} needs it"
    where = signature.outputs[0].name if signature.outputs else ""
    return Reason("wrong_arity", problem, where, "convert the model again") if problem else None


def _check_sizes(signature: OpSignature, target: Target, room: int) -> Reason | None:
    """Return which tensor of the operator alone exceeds the target's memory, or None."""
    for tensor in (*signature.inputs, *signature.outputs):
        if tensor is None or tensor.constant:
            continue
        size = tensor.dtype.itemsize
        for dimension in tensor.shape:
            size *= dimension
        if size > room:
            message = f"tensor {tensor.name!r} has {size:,} bytes, {target.name} has {target.sram_bytes:,}"
            return Reason("too_large", message, tensor.name, "lower the resolution or the batch")
    return None


def _check_scales(signature: OpSignature) -> Reason | None:
    """Return which tensor has a scale that is no normal float32, or None: kernels divide by scales in float32."""
    for tensor in (*signature.inputs, *signature.outputs):
        if tensor is not None and tensor.quantization is not None and tensor.quantization.scale:
            scales = tensor.quantization.scale
            sizes = tuple(map(abs, scales)) if tensor.constant and signature.code in _SIGNED_SCALES else scales
            if min(sizes) >= _LEAST_SCALE and sum(sizes) < math.inf:
                continue  # the usual case, checked without a loop over channels
            for scale, size in zip(scales, sizes, strict=True):
                if not _LEAST_SCALE <= size < math.inf:
                    message = f"tensor {tensor.name!r} has scale {scale:g}, not a normal float32 above 0"
                    return Reason("odd_scale", message, tensor.name, "calibrate on real data")
    return None
