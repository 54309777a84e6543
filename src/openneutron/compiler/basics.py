"""What holds for every operator, checked before any kernel's own limits: inputs and outputs, their sizes, their scales.

A file can claim anything; LiteRT's own kernels read these positions without asking.
"""

from __future__ import annotations

import math

from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.records import dataclass
from openneutron.verdict import Reason

_ANY = 1 << 16  # as many as there are
# A tensor inside a cascade is held some rows at a time; of one this many times the memory hardly a row would fit.
_STREAMED = 16
_LEAST_SCALE = 2.0**-126  # the smallest normal float32
# Operators whose weights may have negative scales: their multipliers carry the sign.
_SIGNED_SCALES = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"})


@dataclass(frozen=True)
class Arity:
    """Least and most inputs, the positions that may be absent (-1), and the most outputs."""

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
        "ADD ARG_MAX ARG_MIN BATCH_MATMUL DIV EXPAND_DIMS GATHER MAXIMUM MEAN MINIMUM MIRROR_PAD MUL PAD PRELU REDUCE_MAX "
        "REDUCE_MIN RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SQUARED_DIFFERENCE SUB SUM TILE TRANSPOSE",
        Arity(2, 2),
    ),
    **_each("BATCH_TO_SPACE_ND PADV2 SLICE SPACE_TO_BATCH_ND", Arity(3, 3)),
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


def basic_reason(signature: OpSignature, target: Target, *, streams: bool = False) -> Reason | None:
    """Why no kernel can serve this operator, whatever its kind; None when its own limits decide.

    With `streams` tensors may be larger than the memory, for a caller that then checks whether a cascade can hold them.

    Example:
        >>> basic_reason(of_operator(graph, graph.operators[0]), targets.load("imxrt700"))
    """
    room = target.sram_bytes * (_STREAMED if streams else 1)
    return _wrong_arity(signature) or _too_large(signature, target, room) or _odd_scale(signature)


def _wrong_arity(signature: OpSignature) -> Reason | None:
    """Why the operator's inputs and outputs cannot be those of its kind; None when they can."""
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


def _too_large(signature: OpSignature, target: Target, room: int) -> Reason | None:
    """Why a tensor of the operator cannot exist on the target; None when all have room one by one."""
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


def _odd_scale(signature: OpSignature) -> Reason | None:
    """Kernels divide by scales in float32, where the reciprocal of a subnormal number is infinite."""
    for tensor in (*signature.inputs, *signature.outputs):
        if tensor is not None and tensor.quantization is not None and tensor.quantization.scale:
            scales = tensor.quantization.scale
            sizes = tuple(map(abs, scales)) if tensor.constant and signature.code in _SIGNED_SCALES else scales
            if min(sizes) >= _LEAST_SCALE and sum(sizes) < math.inf:
                continue  # almost always, and there may be thousands of channels
            for scale, size in zip(scales, sizes, strict=True):
                if not _LEAST_SCALE <= size < math.inf:
                    message = f"tensor {tensor.name!r} has scale {scale:g}, not a normal float32 above 0"
                    return Reason("odd_scale", message, tensor.name, "calibrate on real data")
    return None
