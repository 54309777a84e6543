"""Tapping a program: what a delegate is given, from the program itself cut off right before the call.

Example:
    >>> taps = delegate_inputs(Path("model.pte").read_bytes(), [image])
    >>> [value.shape for value in taps[0]]
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from executorch.exir._serialize import _deserialize_pte_binary
from executorch.exir._serialize._program import serialize_pte_binary
from executorch.exir.schema import DelegateCall, Tensor

from openneutron.errors import FormatError, UnsupportedError
from openneutron.executorch.run.runtime import load_program
from openneutron.microcode.payload import BACKEND_ID


def delegate_inputs(pte: bytes, inputs: Sequence[Any], *, where: str = "<pte>") -> list[list[Any]]:
    """For each call of a Neutron delegate, in order, its arguments (inputs and outputs alike) as torch tensors.

    The program runs once per delegate, up to it: memory is planned, so a tensor is only sure to be there until the next
    instruction. The values of output arguments mean nothing.
    """
    file = _deserialize_pte_binary(pte)
    if len(file.program.execution_plan) != 1 or len(file.program.execution_plan[0].chains) != 1:
        raise UnsupportedError("only programs with one method and one chain can be tapped", where=where)
    plan = file.program.execution_plan[0]
    instructions = plan.chains[0].instructions
    found: list[list[Any]] = []
    for at, instruction in enumerate(instructions):
        call = instruction.instr_args
        if isinstance(call, DelegateCall) and plan.delegates[call.delegate_index].id == BACKEND_ID:
            cut = copy.copy(file)
            cut.program = copy.copy(file.program)
            cut.program.execution_plan = [copy.copy(plan)]
            cut.program.execution_plan[0].chains = [copy.copy(plan.chains[0])]
            cut.program.execution_plan[0].chains[0].instructions = instructions[:at]
            arguments = [index for index in call.args if isinstance(plan.values[index].val, Tensor)]
            if len(arguments) != len(call.args):
                raise FormatError(f"delegate call {at} has arguments that are no tensors", where=where)
            cut.program.execution_plan[0].outputs = arguments
            program = load_program(bytes(serialize_pte_binary(cut)))
            found.append(list(program.run(*inputs)))
    return found
