"""Reading the plan of an ExecuTorch program with the wheel's own schema."""

from __future__ import annotations

from collections import Counter
from typing import Any

from openneutron.cli.tensor_info import TensorInfo
from openneutron.errors import FormatError

Plan = tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...], dict[str, int], dict[str, int]]


def read_pte(data: bytes, where: str) -> Plan:
    """Inputs, outputs, operator → calls on the CPU, and delegate → calls, of the program's `forward`."""
    from executorch.exir._serialize import _deserialize_pte_binary

    try:
        return _read(_deserialize_pte_binary(data).program.execution_plan[0])
    except Exception as error:  # the wheel's reader checks little, so a damaged file can raise anything
        raise FormatError(
            f"the ExecuTorch program is damaged ({type(error).__name__}: {error})", where=where, hint="export it again"
        ) from error


def _read(plan: Any) -> Plan:
    operators: Counter[str] = Counter()
    delegates: Counter[str] = Counter()
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if hasattr(call, "op_index"):
                operator = plan.operators[call.op_index]
                operators[f"{operator.name}.{operator.overload}" if operator.overload else operator.name] += 1
            elif hasattr(call, "delegate_index"):
                delegates[plan.delegates[call.delegate_index].id] += 1
    inputs = tuple(_tensor(plan.values[index].val, f"input_{at}") for at, index in enumerate(plan.inputs))
    outputs = tuple(_tensor(plan.values[index].val, f"output_{at}") for at, index in enumerate(plan.outputs))
    return inputs, outputs, dict(operators), dict(delegates)


def _tensor(value: Any, name: str) -> TensorInfo:
    if not hasattr(value, "scalar_type"):
        return TensorInfo(name, type(value).__name__.lower(), ())
    order = list(value.dim_order)
    channels_last = len(order) > 2 and order == [0, *range(2, len(order)), 1]
    dtype = _DTYPES.get(value.scalar_type.name, value.scalar_type.name.lower())
    return TensorInfo(name, dtype, tuple(value.sizes), order="channels last" if channels_last else "")


# ExecuTorch's names for the types numpy has.
_DTYPES = {
    "BYTE": "uint8",
    "CHAR": "int8",
    "SHORT": "int16",
    "INT": "int32",
    "LONG": "int64",
    "HALF": "float16",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "BOOL": "bool",
}
