"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same bytes under another shape; no kernel runs."""

from __future__ import annotations

from math import prod

from openneutron.compiler.kernels import serves
from openneutron.compiler.kernels.movement import same_moved_or_index_type
from openneutron.compiler.l1 import Value
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.signature import OpSignature
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Verdict, limit, no


@limit("input and output must have the same number of elements")
def same_size(op: OpSignature, target: Target) -> Verdict:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    if prod(x.shape) != prod(y.shape):
        return no(f"shapes are {list(x.shape)} and {list(y.shape)}", hint="resolve dynamic shapes before compiling")
    return OK


@limit("input and output must hold elements")
def holds_elements(op: OpSignature, target: Target) -> Verdict:
    """The shape itself may be empty: that of a single number."""
    for tensor in (op.input(0), op.outputs[0]):
        if tensor is not None and 0 in tensor.shape:
            return no(f"tensor {tensor.name!r} has shape {list(tensor.shape)}")
    return OK


@limit("the new shape, or the new axis, must not be computed at run time")
def shape_known(op: OpSignature, target: Target) -> Verdict:
    argument = op.input(1)
    if argument is None or argument.constant:
        return OK
    return no(f"{argument.name!r} gives it", hint="give the model inputs of fixed size")


@limit("EXPAND_DIMS keeps scale and zero point")
def same_quantization(op: OpSignature, target: Target) -> Verdict:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    if (x.scale, x.zero_point) != (y.scale, y.zero_point):
        return no(f"input is {x.scale:g}/{x.zero_point}, output {y.scale:g}/{y.zero_point}")
    return OK


def bind_view(state: Legalizer) -> None:
    """Make the output an alias of input 0 in its own shape; constants stay constants."""
    source = state.graph.values[state.value(0)]
    tensor = state.source.tensors[state.op.outputs[0]]
    y = state.signature.outputs[0]
    shape = shape4(tensor.shape)
    if source.data is not None:
        made = Value(
            tensor.name,
            shape,
            source.dtype,
            y.scale,
            y.zero_point,
            state.op.outputs[0],
            data=source.data.reshape(shape),
        )
        state.bind(0, state.graph.add_value(made))
        return
    value = state.view(state.value(0), shape, tensor.name, state.op.outputs[0])
    # A view may have other quantization parameters than its input; the bytes then have those of the output.
    state.graph.values[value].scale, state.graph.values[value].zero_point = y.scale, y.zero_point
    state.bind(0, value)


@serves("RESHAPE", "SQUEEZE", limits=(same_moved_or_index_type, holds_elements, shape_known, same_size))
def legalize(state: Legalizer) -> None:
    """Make the output an alias of the input."""
    bind_view(state)


@serves("EXPAND_DIMS", limits=(same_moved_or_index_type, holds_elements, shape_known, same_size, same_quantization))
def legalize_expand_dims(state: Legalizer) -> None:
    """Make the output an alias of the input."""
    bind_view(state)
