"""Tapping a program: what a delegate is given, from the program itself cut off right before the call.

Example:
    >>> first = taps(Path("model.pte").read_bytes())[0]
    >>> [value.shape for value in first.run(image)]
"""

from __future__ import annotations

import copy

from executorch.exir.schema import DelegateCall, Tensor

from openneutron.errors import FormatError, UnsupportedError
from openneutron.executorch.run.runtime import LoadedProgram, load_program
from openneutron.executorch.upstream.edge_names import read_program_file, write_program_file
from openneutron.microcode.payload import BACKEND_ID
from openneutron.microcode.pte import FORWARD


def taps(pte: bytes, *, where: str = "<pte>", method: str = FORWARD) -> list[LoadedProgram]:
    """For each call of a Neutron delegate in a method, in order, the program up to it: it returns the delegate's arguments.

    The method is the program's `forward`.

    One program for each, because memory is planned: a tensor is only sure to be there until the next instruction. Arguments
    are inputs and outputs alike, as torch tensors; the values of outputs mean nothing. Delegates before the cut keep their
    state from run to run; buffers that the program itself assigns at its end keep their first contents.
    """
    file = read_program_file(pte)
    plan = next((one for one in file.program.execution_plan if one.name == method), None)
    if plan is None or len(plan.chains) != 1:
        raise UnsupportedError(
            f"method {method} is no single chain of instructions, so it cannot be tapped", where=where
        )
    instructions = plan.chains[0].instructions
    found: list[LoadedProgram] = []
    for at, instruction in enumerate(instructions):
        call = instruction.instr_args
        if isinstance(call, DelegateCall) and plan.delegates[call.delegate_index].id == BACKEND_ID:
            cut = copy.copy(file)
            cut.program = copy.copy(file.program)
            cut.program.execution_plan = [copy.copy(plan)]
            cut.program.execution_plan[0].name = FORWARD
            cut.program.execution_plan[0].chains = [copy.copy(plan.chains[0])]
            cut.program.execution_plan[0].chains[0].instructions = instructions[:at]
            arguments = [index for index in call.args if isinstance(plan.values[index].val, Tensor)]
            if len(arguments) != len(call.args):
                raise FormatError(f"delegate call {at} has arguments that are no tensors", where=where)
            cut.program.execution_plan[0].outputs = arguments
            found.append(load_program(bytes(write_program_file(cut))))
    return found
