"""Limits and legalization shared by the kernels that work element by element."""

from __future__ import annotations

from typing import Any

from openneutron.compiler.kernels.common import ACTIVATIONS, BYTES, check_quantized, range_of
from openneutron.compiler.kernels.copy import emit_copy, loops_fit
from openneutron.compiler.l1 import ITEM_BYTES, Node, RowDemand, Value
from openneutron.compiler.legalizer import Legalizer, shape4
from openneutron.compiler.numbers.broadcast import broadcast, inputs_to_repeat
from openneutron.compiler.numbers.multipliers import MAX_LEFT_SHIFT, activation_range, multiplier
from openneutron.compiler.numbers.strides import Loop, dense
from openneutron.compiler.numbers.tables import Scaling
from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.codes import FUSED_ACTIVATIONS
from openneutron.litert.graph import DType
from openneutron.machine.targets import Target
from openneutron.microcode.table import Rounding
from openneutron.verdict import OK, Verdict, limit, no


def data_inputs(op: OpSignature) -> tuple[TensorSignature, ...]:
    """Return the tensors that an element-wise operator reads: the first two inputs, where given."""
    return tuple(tensor for tensor in op.inputs[:2] if tensor is not None)


def scaling_of(op: OpSignature) -> Scaling:
    """Return scales and zero points of input and output of a unary operator."""
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    return Scaling(x.scale, x.zero_point, y.scale, y.zero_point, signed=x.dtype is DType.INT8)


def output_range(op: OpSignature) -> tuple[int, int]:
    """Return the clamp of the fused activation, or the type's range without one."""
    y = op.outputs[0]
    activation = getattr(op.options, "fusedActivationFunction", 0)
    return activation_range(activation, y.scale, y.zero_point, range_of(y.dtype))


@limit("inputs and output must be INT8 or UINT8, all of one type, quantized per tensor")
def one_byte_type(op: OpSignature, target: Target) -> Verdict:
    return _one_type(op, BYTES)


@limit("inputs and output must be INT8, UINT8 or INT16, all of one type, quantized per tensor, INT16 with zero point 0")
def one_activation_type(op: OpSignature, target: Target) -> Verdict:
    return _one_type(op, ACTIVATIONS)


def _one_type(op: OpSignature, types: tuple[DType, ...]) -> Verdict:
    if not op.inputs or op.inputs[0] is None:
        return no("a required input is absent")
    y = op.outputs[0]
    for tensor in (*data_inputs(op), y):
        verdict = check_quantized(tensor, types)
        if not verdict:
            return verdict
        if tensor.dtype is not y.dtype:
            return no(f"tensor {tensor.name!r} is {tensor.dtype}, the output {y.dtype}")
    return OK


@limit("input and output must be INT8 or UINT8, of one type, quantized per tensor")
def one_byte_input(op: OpSignature, target: Target) -> Verdict:
    return one_byte_type.check(OpSignature(op.code, op.inputs[:1], op.outputs[:1], op.options), target)


@limit("input and output must be INT8, UINT8 or INT16, of one type, quantized per tensor, INT16 with zero point 0")
def one_input_type(op: OpSignature, target: Target) -> Verdict:
    return one_activation_type.check(OpSignature(op.code, op.inputs[:1], op.outputs[:1], op.options), target)


@limit("input and output must have the same shape")
def same_shape(op: OpSignature, target: Target) -> Verdict:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    return OK if x.shape == y.shape else no(f"shapes are {list(x.shape)} and {list(y.shape)}")


@limit("two inputs are needed")
def two_inputs(op: OpSignature, target: Target) -> Verdict:
    given = len(data_inputs(op))
    return OK if given == 2 and len(op.inputs) == 2 else no(f"{len(op.inputs)} inputs are given")


@limit("inputs must broadcast to the output, one that repeats with at most six nested loops")
def broadcasts(op: OpSignature, target: Target) -> Verdict:
    y = op.outputs[0]
    shapes = tuple(tensor.shape for tensor in data_inputs(op))
    first = inputs_to_repeat(shapes, y.shape)
    if first is None or not all(loops_fit(_repeating_loops(shapes[at], y.shape)) for at in first):
        return no(f"shapes are {' and '.join(str(list(s)) for s in shapes)}", hint="insert a TILE or RESHAPE")
    return OK


def _repeating_loops(shape: tuple[int, ...], output: tuple[int, ...]) -> list[Loop]:
    """Return loops that write a broadcast tensor out in full."""
    padded = (1,) * (len(output) - len(shape)) + tuple(shape)
    steps = zip(padded, output, dense(padded), dense(output), strict=True)
    return [Loop(out, read if size > 1 else 0, write) for size, out, read, write in steps]


@limit("the fused activation must be NONE, RELU, RELU6 or RELU_N1_TO_1")
def known_activation(op: OpSignature, target: Target) -> Verdict:
    activation = getattr(op.options, "fusedActivationFunction", 0)
    return OK if 0 <= activation < len(FUSED_ACTIVATIONS) else no(f"activation number {activation}")


@limit("input scale over output scale must stay below 2^30")
def rescale_fits(op: OpSignature, target: Target) -> Verdict:
    x, y = op.inputs[0], op.outputs[0]
    assert x is not None
    _, shift = multiplier(x.scale / y.scale)
    return OK if shift <= MAX_LEFT_SHIFT else no(f"it is {x.scale / y.scale:g}", hint="calibrate on real data")


def reshape(state: Legalizer, value: int, shape: tuple[int, int, int, int]) -> int:
    """Return the value in another 4-D shape: itself, a constant of that shape, or a view."""
    source = state.graph.values[value]
    if source.shape == shape:
        return value
    if source.data is not None:
        data = source.data.reshape(shape)
        return state.graph.add_value(
            Value(source.name, shape, source.dtype, source.scale, source.zero_point, source.tensor, data=data)
        )
    return state.view(value, shape, source.name)


def emit_unary(
    state: Legalizer, kernel: str, constants: list[Any], params: Any, rounding: Rounding = Rounding.NONE
) -> None:
    """Emit one node from input 0 to the output of the same shape; `constants` are the operands between them."""
    x = state.value(0)
    output = state.output()
    source = reshape(state, x, state.graph.values[output].shape)
    position = 1 + len(constants)
    assert position <= 2
    streams = state.graph.values[source].data is None
    fits = ITEM_BYTES[state.graph.values[source].dtype] == ITEM_BYTES[state.graph.values[output].dtype]
    state.emit(
        Node(
            kernel=kernel,
            operands=[source, *constants, output],
            output=output,
            params=params,
            rounding=rounding,
            demand={0: RowDemand()} if streams else {},
            in_place=(0,) if streams and fits else (),
        )
    )


def emit_binary(state: Legalizer, kernel: str, params: Any, rounding: Rounding = Rounding.NONE) -> None:
    """Emit one node from inputs 0 and 1 to the output, with broadcasting."""
    given, full = [tensor.shape for tensor in data_inputs(state.signature)], state.signature.outputs[0].shape
    values = [state.value(at) for at in range(2)]
    for at in inputs_to_repeat(tuple(given), full) or ():
        source = state.graph.values[values[at]]
        name = f"{source.name} (repeated)"
        values[at] = state.temporary(name, shape4(full), source.dtype, source.scale, source.zero_point)
        emit_copy(state, state.value(at), values[at], _repeating_loops(given[at], full))
        given[at] = full
    shapes = broadcast(tuple(given), full)
    assert shapes is not None
    inputs = [reshape(state, values[at], shapes.inputs[at]) for at in range(2)]
    output = reshape(state, state.output(), shapes.output)
    streams = [at for at in range(2) if state.graph.values[inputs[at]].data is None]
    state.emit(
        Node(
            kernel=kernel,
            operands=[*inputs, output],
            output=output,
            params=params,
            rounding=rounding,
            demand={at: RowDemand() for at in streams if shapes.inputs[at][1] == shapes.output[1]},
            in_place=tuple(at for at in streams if shapes.inputs[at] == shapes.output),
        )
    )
