"""Limits of the published runner builds, checked before an upload: a board that is sent too much may not answer at all.

Sizes are those of the boards' linker files and buffers in NXP's public example sources.

Example:
    >>> check_program(pte, "model.pte")
    >>> check_model(tflite, "model.tflite", "frdmmcxn947")
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from openneutron.errors import OptionError, UnsupportedError
from openneutron.litert.read import read_model
from openneutron.microcode.pte import PlanTensor, read_plan
from openneutron.modelrunner.answers import storage

# The chip that executorch_modelrunner is published for, and its buffers on the MIMXRT700-EVK.
PROGRAM_CHIP = "imxrt700"
PROGRAM_BYTES = 393_216
INPUT_BYTES = 262_144
RESULT_BYTES = 266_240
METHOD_POOL_BYTES = 1_245_184
DESCRIPTION_BYTES = 256
# Arrays of tflm_modelrunner, which the firmware fills without checking.
OPERATORS = OPERATOR_OUTPUTS = 256
OUTPUTS_PER_OPERATOR = 20
ENDS = 16

# The operators that executorch_modelrunner registers beside the delegate.
_ATEN = (
    "add", "addmm", "_softmax", "constant_pad_nd", "convolution", "max_pool2d_with_indices", "avg_pool2d", "permute_copy",
    "sub", "mul", "div", "relu", "sigmoid", "tanh", "leaky_relu", "gelu", "native_layer_norm", "_native_batch_norm_legit",
    "view_copy", "unsqueeze_copy", "cat", "stack", "expand_copy", "clone", "mean", "amax", "amin", "argmax", "clamp",
    "embedding", "scalar_tensor",
)  # fmt: skip
REGISTERED = frozenset(
    {
        *(f"aten::{name}.out" for name in _ATEN), "aten::split_copy.Tensor_out", "aten::slice_copy.Tensor_out",
        "aten::select_copy.int_out", "aten::arange.start_out",
        "quantized_decomposed::quantize_per_tensor.out", "quantized_decomposed::dequantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_channel.out", "dim_order_ops::_clone_dim_order.out",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Board:
    """A board with a published build of tflm_modelrunner: the largest model in RAM, and in the window for larger ones."""

    chip: str
    ram_bytes: int
    window_bytes: int


# A model that is too large for the RAM buffer goes to PSRAM or, on MCX N, into half of the internal flash.
_RT700 = Board("imxrt700", 1_000 << 10, 32 << 20)
_MCXN = Board("mcxn94x", 100 << 10, 1 << 20)
BOARDS = {
    "mimxrt700evk": _RT700, "frdmimxrt700": _RT700,
    "frdmmcxn947": _MCXN, "mcxn9xxevk": _MCXN, "mcxn5xxevk": Board("mcxn54x", 100 << 10, 1 << 20),
    "mimxrt2660evk": Board("imxrt2660", 500 << 10, 32 << 20),
}  # fmt: skip


def board_of(name: str) -> Board:
    """Return the board of that name; spelling with dashes, dots and capitals is accepted."""
    plain = "".join(filter(str.isalnum, name.lower()))
    if plain not in BOARDS:
        raise OptionError(f"unknown board {name!r}", hint=f"one of {', '.join(BOARDS)}")
    return BOARDS[plain]


def check_program(data: bytes, where: str, board: str = "") -> None:
    """Raise an `UnsupportedError` for a `.pte` that executorch_modelrunner cannot take, and say what is too large."""
    if board and (chip := board_of(board).chip) != PROGRAM_CHIP:
        raise UnsupportedError(
            f"executorch_modelrunner is published for {PROGRAM_CHIP} only, and {board} has {chip}", where=where,
            hint="give a .tflite for tflm_modelrunner, or leave --board out",
        )  # fmt: skip
    found = next(_shortfalls(data, where), "")
    if found:
        raise UnsupportedError(
            f"executorch_modelrunner cannot run it: {found}", where=where,
            hint="those are the buffers of NXP's published build; build the runner with larger ones, or change the model",
        )  # fmt: skip


def _shortfalls(data: bytes, where: str) -> Iterator[str]:
    if len(data) > PROGRAM_BYTES:
        yield f"the file has {len(data):,} bytes, and its buffer {PROGRAM_BYTES:,}"
    plan = read_plan(data, where=where)
    if len(plan.inputs) != 1:
        yield f"it has {len(plan.inputs)} inputs, and only the first can be set"
    if plan.planned_bytes > METHOD_POOL_BYTES:
        yield f"its planned memory is {plan.planned_bytes:,} bytes, and the pool for it has {METHOD_POOL_BYTES:,}"
    if plan.inputs and _nbytes(plan.inputs[0]) > INPUT_BYTES:
        yield f"its input has {_nbytes(plan.inputs[0]):,} bytes, and the buffer for it {INPUT_BYTES:,}"
    answer = 9 + sum(6 + 4 * len(one.shape) + _nbytes(one) for one in plan.outputs)
    if answer > RESULT_BYTES:
        yield f"its outputs make an answer of {answer:,} bytes, and the buffer for it has {RESULT_BYTES:,}"
    missing = sorted(set(plan.operators) - REGISTERED)
    if missing:
        yield f"it leaves {', '.join(missing[:3])} on the CPU, not registered there"


def check_model(data: bytes, where: str, board: str = "") -> None:
    """Raise an `UnsupportedError` for a `.tflite` that tflm_modelrunner cannot take; without a board, any of them."""
    known = [board_of(board)] if board else list(BOARDS.values())
    most = max(one.window_bytes for one in known)
    if len(data) > most:
        raise UnsupportedError(
            f"the file has {len(data):,} bytes, and {board or 'the largest board'} takes {most:,}", where=where,
            hint="choose a smaller model or a board with external memory",
        )  # fmt: skip
    graph = read_model(data, source=where).main
    outputs = [len(op.outputs) for op in graph.operators]
    counts = (
        (len(outputs), OPERATORS, "operators"),
        (sum(outputs), OPERATOR_OUTPUTS, "outputs of operators in all"),
        (max(outputs, default=0), OUTPUTS_PER_OPERATOR, "outputs of one operator"),
        (len(graph.inputs), ENDS, "inputs"),
        (len(graph.outputs), ENDS, "outputs"),
    )
    for count, limit, what in counts:
        if count > limit:
            raise UnsupportedError(
                f"the model has {count} {what}, and tflm_modelrunner has room for {limit}", where=where,
                hint="it does not check this itself and would overwrite its memory; convert the model, so that it has fewer",
            )  # fmt: skip


def _nbytes(tensor: PlanTensor) -> int:
    return math.prod(tensor.shape) * storage(tensor.dtype).itemsize if tensor.dtype else 0
