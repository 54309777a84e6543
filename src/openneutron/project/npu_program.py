"""The ExecuTorch program that NXP's converter made: the kernels to register, its pools, samples, and C++ around it.

Example:
    >>> npu = npu_program(data, "model_npu.pte", Path("model.pte"), load("mimxrt700evk"), inputs=(), count=2, seed=0)
    >>> npu.operators
    ('quantized_decomposed::dequantize_per_tensor.out', 'quantized_decomposed::quantize_per_tensor.out')
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from openneutron.board.rounding import EXACT, SILICON
from openneutron.cli.board.subject import Subject, references
from openneutron.cli.inputs.frames import number_inputs
from openneutron.errors import OptionError
from openneutron.files import kind_of, kind_of_file
from openneutron.microcode.container import decode_container
from openneutron.microcode.encode import align
from openneutron.microcode.payload import BACKEND_ID, parse_payload
from openneutron.microcode.pte import Plan, PlanTensor, read_plan
from openneutron.modelrunner.connect import EXECUTORCH
from openneutron.project.boards import Board
from openneutron.project.npu import NpuModel, check_board
from openneutron.project.samples import Array

# Method, memory manager and delegate beside the planned memory: NXP's example used 425 bytes (frdmimxrt700 readme); that is for
# one delegate, so much more is set aside (assumed).
_METHOD_SPARE = 16 * 1024
# What a delegate asks for besides scratch and copies of its border: arrays of pointers, profile, debug (assumed).
_TEMP_SPARE = 8 * 1024
# Arguments between the context and the output, by their C++ types: of ExecuTorch's portable and quantized kernels
# (kernels/portable/functions.yaml, kernels/quantized/quantized.yaml).
_TENSOR, _INT, _DOUBLE, _BOOL = "const Tensor &", "int64_t", "double", "bool"
_TYPE, _INTS = "ScalarType", "ArrayRef<int64_t>"
_SCALE = (_DOUBLE, _INT, _INT, _INT, _TYPE)
KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "quantized_decomposed::quantize_per_tensor.out": ("quantize_per_tensor_out", (_TENSOR, *_SCALE)),
    "quantized_decomposed::dequantize_per_tensor.out": (
        "dequantize_per_tensor_out",
        (_TENSOR, *_SCALE, "std::optional<ScalarType>"),
    ),
    "aten::_softmax.out": ("softmax_out", (_TENSOR, _INT, _BOOL)),
    "aten::view_copy.out": ("view_copy_out", (_TENSOR, _INTS)),
    "aten::permute_copy.out": ("permute_copy_out", (_TENSOR, _INTS)),
    "aten::clone.out": ("clone_out", (_TENSOR, "std::optional<MemoryFormat>")),
    "dim_order_ops::_clone_dim_order.out": (
        "_clone_dim_order_out",
        (_TENSOR, _BOOL, "std::optional<ArrayRef<int64_t>>"),
    ),
    "aten::relu.out": ("relu_out", (_TENSOR,)),
    "aten::sigmoid.out": ("sigmoid_out", (_TENSOR,)),
    "aten::tanh.out": ("tanh_out", (_TENSOR,)),
}
_READERS = {
    _TENSOR: "toTensor()", _INT: "toInt()", _DOUBLE: "toDouble()", _BOOL: "toBool()", _TYPE: "toScalarType()",
    _INTS: "toIntList()",
}  # fmt: skip


def npu_program(
    data: bytes, where: str, source: Path, board: Board, *, inputs: Sequence[Path], count: int, seed: int
) -> NpuModel:
    """Read what NXP's converter made of the program of which `source` is an open compile."""
    check_board(board)
    if kind_of(data) != "pte" or kind_of_file(source) != "pte":
        raise OptionError(
            "an ExecuTorch build with NXP's library is made of two .pte files", where=where,
            hint="compile the model twice: with the open converter for the model, with --converter nxp for --npu-model",
        )  # fmt: skip
    plan, before = read_plan(data, where=where), read_plan(source.read_bytes(), where=str(source))
    payloads = [parse_payload(blob, where=where) for name, blob in plan.payloads if name == BACKEND_ID]
    if not payloads or any(payload.converter == "open" for payload in payloads):
        raise OptionError(
            "NXP's converter did not make it, and NXP's driver runs nothing else", where=where,
            hint="make it with `openneutron compile --converter nxp`",
        )  # fmt: skip
    if _ends(plan) != _ends(before):
        raise OptionError(
            f"its inputs and outputs are not those of {source}", where=where,
            hint="--npu-model must be what NXP's converter made of the model, compiled with the same options",
        )  # fmt: skip
    missing = sorted(set(plan.operators) - set(KERNELS))
    if missing:
        raise OptionError(
            f"no registration is written for the kernel {', '.join(missing)}", where=where,
            hint="compile with --int8-io, or change the model so that the NPU takes that operator",
        )  # fmt: skip
    scratch = max(
        decode_container(one.microcode, profiling=one.profiling, where=where).scratch_bytes for one in payloads
    )
    border = sum(align(_bytes(one)) for one in (*plan.inputs, *plan.outputs))
    pools = (align(plan.planned_bytes) + _METHOD_SPARE, align(scratch) + border + _TEMP_SPARE)
    tensors = tuple(number_inputs(plan.inputs))
    subject = Subject(Path(where), data, data, EXECUTORCH, tensors, tuple(one.dim_order for one in plan.inputs))
    samples = [subject.arrays(path, seed) for path in inputs]
    samples = samples or [subject.arrays(None, seed + at) for at in range(count)]
    found = references(subject, source, samples)
    exact = _laid_out(found[EXACT], plan)
    silicon = _laid_out(found[SILICON], plan) if SILICON in found else exact
    runs = tuple(tuple(np.frombuffer(one, np.uint8) for one in subject.bytes_of(arrays)) for arrays in samples)
    return NpuModel(data, tuple(sorted(plan.operators)), sum(pools), runs, exact, silicon, pools)


def registrations(operators: Sequence[str]) -> list[dict[str, str]]:
    """Return for each operator its name, and its C++ function with the types and values of the arguments."""
    found = []
    for name in operators:
        function, types = KERNELS[name]
        values = [f"stack[{at}]->{_reader(kind)}" for at, kind in enumerate(types)]
        values.append(f"stack[{len(types)}]->toTensor()")
        declared = ", ".join(("KernelRuntimeContext &", *types, "Tensor &"))
        found.append({"name": name, "function": function, "types": declared, "arguments": ", ".join(values)})
    return found


def _reader(kind: str) -> str:
    """The method of an EValue for an argument of this type."""
    if kind.startswith("std::optional<"):
        return f"toOptional<{kind.removeprefix('std::optional<')[:-1]}>()"
    return _READERS[kind]


def _ends(plan: Plan) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.dtype, one.shape) for one in (*plan.inputs, *plan.outputs)]


def _bytes(tensor: PlanTensor) -> int:
    return int(np.prod(tensor.shape, dtype=np.int64)) * np.dtype(tensor.dtype).itemsize


def _laid_out(runs: Sequence[dict[str, Array]], plan: Plan) -> tuple[tuple[Array, ...], ...]:
    """The outputs of each run as they lie in the board's memory."""
    orders = [tensor.dim_order for tensor in plan.outputs]
    return tuple(
        tuple(
            np.ascontiguousarray(array.transpose(order) if order else array)
            for array, order in zip(run.values(), orders, strict=True)
        )
        for run in runs
    )
