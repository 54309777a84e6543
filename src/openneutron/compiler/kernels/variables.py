"""VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE: names for bytes of the state region; no kernel runs.

A read returns the variable's current value; an assignment changes it for later reads and for the next run.
"""

from __future__ import annotations

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.common import not_empty
from openneutron.compiler.legalizer import Legalizer
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no

# Types of variables: they are only moved, so every type that a kernel reads is allowed.
_KEPT = (DType.INT8, DType.UINT8, DType.INT16)


def _check_kept(tensor: TensorSignature | None) -> Verdict:
    if tensor is None:
        return no("there is no value")
    if tensor.dtype not in _KEPT:
        return no(f"it is {tensor.dtype}", hint="quantize the model to INT8, its state included")
    return OK


@limit("a variable must be INT8, UINT8 or INT16")
def kept_type(op: OpSignature, target: Target) -> Verdict:
    return _check_kept(op.outputs[0] if op.code == "READ_VARIABLE" else op.input(1))


@serves("VAR_HANDLE", limits=())
def legalize_handle(state: Legalizer) -> None:
    """Emit nothing: reads and assignments look the name up."""


@serves("READ_VARIABLE", limits=(kept_type, not_empty))
def legalize_read(state: Legalizer) -> None:
    """Bind the output to the variable's current value."""
    state.bind(0, state.variable(state.op.inputs[0], state.op.outputs[0]))


@serves("ASSIGN_VARIABLE", limits=(kept_type, not_empty))
def legalize_assign(state: Legalizer) -> None:
    """Set the variable's value to input 1."""
    state.assign(state.op.inputs[0], state.value(1))
