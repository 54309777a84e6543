"""Limits of NXP's converter, with the same interface as our own kernels' `check`.

The partitioner uses this table with the nxp converter. An operator that is not in it is refused: NXP publishes no complete
list, and an operator that the converter leaves out costs a trial conversion.

Example:
    >>> check(of_operator(graph, graph.operators[0]), "imxrt700").reason
"""

from __future__ import annotations

import math

from openneutron.compiler.signature import OpSignature, TensorSignature
from openneutron.litert.codes import CLAMPS, VIEWS
from openneutron.litert.graph import DType
from openneutron.machine import targets
from openneutron.machine.targets import Target
from openneutron.verdict import OK, Limit, Reason, Verdict, first_reason, limit, no

REDUCTION_MAX = 65_535  # NXP: elements of one dot product, channels rounded up to the array's length
WINDOW_MAX = 4_096  # NXP: kernel, stride and dilation, each direction
SOFTMAX_CHANNELS_MAX = 2_040  # the three softmax figures are those of the reference backend
SOFTMAX_POSITIONS_MAX = 4_096
SOFTMAX_ELEMENTS_MAX = 524_288
TRANSPOSED_STRIDE_MAX = 2  # NXP
RANK_MAX = 7  # reference backend: rank below 8
RESIZE_FACTORS = (1, 2, 4, 8)  # reference backend


def _activations(op: OpSignature) -> list[TensorSignature]:
    """Return inputs computed at run time, and outputs."""
    inputs = [t for t in op.inputs if t is not None and not t.constant]
    return [*inputs, *op.outputs]


# Operators that NXP's documentation lists with 16-bit activations, by chip; it lists no others.
WIDE_OPERATORS = {
    "imxrt700": frozenset({
        "ADD", "BATCH_MATMUL", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MUL", "PRELU", "SLICE",
        "SUB", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    }),
    "mcxn94x": frozenset({"DEPTHWISE_CONV_2D", "UNIDIRECTIONAL_SEQUENCE_LSTM"}),
}  # fmt: skip


@limit("activations must be INT8, or INT16 where NXP lists the operator so for the chip, quantized per tensor")
def known_activations(op: OpSignature, target: Target) -> Verdict:
    """Check every tensor computed at run time, inputs and outputs."""
    wide = op.code in WIDE_OPERATORS.get(target.name, ())
    for tensor in _activations(op):
        if tensor.dtype is DType.INT16 and not wide:
            return no(
                f"tensor {tensor.name!r} is int16, and NXP lists no 16-bit {op.code} for {target.name}",
                hint="quantize this part of the model to INT8, or use the open converter",
            )
        if tensor.dtype not in (DType.INT8, DType.INT16):
            return no(f"tensor {tensor.name!r} is {tensor.dtype}", hint="quantize the model to INT8")
        if tensor.quantization is None or len(tensor.quantization.scale) != 1:
            count = len(tensor.quantization.scale) if tensor.quantization else 0
            return no(f"tensor {tensor.name!r} has {count} scales", hint="quantize activations per tensor")
    return OK


def _quantized_operands(op: OpSignature) -> list[TensorSignature]:
    """Return the activations and quantized constants among the inputs: all tensors with a scale."""
    inputs = [t for t in op.inputs if t is not None and t.dtype in (DType.INT8, DType.INT16)]
    return [*inputs, *op.outputs]


@limit("inputs and outputs must share scale and zero point")
def same_quantization(op: OpSignature, target: Target) -> Verdict:
    """Check equal quantization ("same-q" in the reference backend)."""
    output = op.outputs[0]
    for tensor in _quantized_operands(op):
        if (tensor.scale, tensor.zero_point) != (output.scale, output.zero_point):
            return no(
                f"{tensor.name!r} has scale {tensor.scale:.6g} and zero point {tensor.zero_point}, {output.name!r} "
                f"{output.scale:.6g} and {output.zero_point}",
                hint="quantize both alike",
            )
    return OK


@limit("one input must already have the shape of the output")
def broadcasts_one_side(op: OpSignature, target: Target) -> Verdict:
    """Check that at most one input broadcasts."""
    output = op.outputs[0].shape
    shapes = [t.shape for t in op.inputs[:2] if t is not None]
    # Leading ones do not change a tensor, so (8, 8) counts as (1, 8, 8).
    if any((1,) * (len(output) - len(shape)) + shape == output for shape in shapes):
        return OK
    return no(f"shapes {[list(s) for s in shapes]} make {list(output)}", hint="expand one input first")


@limit("weights must be constant INT8")
def static_weights(op: OpSignature, target: Target) -> Verdict:
    """Check weights of convolutions and fully connected layers."""
    w = op.input(1)
    if w is None or not w.constant:
        return no("they are computed at run time", hint="make the weights constant")
    return OK if w.dtype is DType.INT8 else no(f"they are {w.dtype}", hint="quantize weights to INT8")


@limit("the bias, where given, must be constant INT32, or INT64 with 16-bit activations")
def static_bias(op: OpSignature, target: Target) -> Verdict:
    """Check the bias of convolutions and fully connected layers."""
    bias = op.input(2)
    types = (DType.INT32, DType.INT64) if op.outputs[0].dtype is DType.INT16 else (DType.INT32,)
    if bias is None or (bias.constant and bias.dtype in types):
        return OK
    return no(f"it is {bias.dtype}{'' if bias.constant else ', computed at run time'}")


@limit("weights must have two dimensions")
def weights_are_matrix(op: OpSignature, target: Target) -> Verdict:
    """Check weights of fully connected layers."""
    w = op.input(1)
    rank = 0 if w is None else len(w.shape)
    return OK if rank == 2 else no(f"they have {rank}")


@limit("input, weights and output must have four dimensions")
def four_dimensions(op: OpSignature, target: Target) -> Verdict:
    """Check convolutions; one-dimensional ones become two-dimensional before."""
    for tensor in (*op.inputs[:2], op.outputs[0]):
        if tensor is None or len(tensor.shape) != 4:
            return no(f"a shape is {list(tensor.shape) if tensor else 'absent'}")
    return OK


@limit(f"kernel, stride and dilation must not exceed {WINDOW_MAX}")
def window_bounded(op: OpSignature, target: Target) -> Verdict:
    """Check windows of convolutions, plain and depth-wise."""
    w = op.input(1)
    assert w is not None
    o = op.options
    numbers = [*w.shape[1:3], o.strideH, o.strideW, o.dilationHFactor, o.dilationWFactor]
    return OK if max(numbers) <= WINDOW_MAX else no(f"the largest of them is {max(numbers)}")


@limit(f"kernel height x width x input channels, rounded up to the array's length, must not exceed {REDUCTION_MAX}")
def reduction_bounded(op: OpSignature, target: Target) -> Verdict:
    """Check the dot product length of dense convolutions."""
    w = op.input(1)
    assert w is not None
    length = w.shape[1] * w.shape[2] * -(-w.shape[3] // target.length) * target.length
    return OK if length <= REDUCTION_MAX else no(f"it is {length}", hint="use a smaller kernel or fewer channels")


def _transposed_sizes(op: OpSignature) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return (kernel, stride) of TRANSPOSE_CONV, whose weights are its second input."""
    w = op.input(1)
    assert w is not None
    return (w.shape[1], w.shape[2]), (op.options.strideH, op.options.strideW)


@limit(f"the stride of a transposed convolution must not exceed {TRANSPOSED_STRIDE_MAX}, nor its kernel")
def transposed_stride(op: OpSignature, target: Target) -> Verdict:
    """Check strides of transposed convolutions."""
    kernel, stride = _transposed_sizes(op)
    fits = all(s <= min(k, TRANSPOSED_STRIDE_MAX) for k, s in zip(kernel, stride, strict=True))
    return OK if fits else no(f"stride {list(stride)} with kernel {list(kernel)}", hint="resize, then convolve")


@limit(f"the kernel of a transposed convolution must not exceed {WINDOW_MAX}")
def transposed_kernel(op: OpSignature, target: Target) -> Verdict:
    """Check kernels of transposed convolutions."""
    kernel, _ = _transposed_sizes(op)
    return OK if max(kernel) <= WINDOW_MAX else no(f"it is {list(kernel)}")


@limit("the padding of a transposed convolution must be smaller than its kernel")
def transposed_padding(op: OpSignature, target: Target) -> Verdict:
    """Check padding of transposed convolutions: the padding that the forward convolution has before the image."""
    kernel, stride = _transposed_sizes(op)
    source = op.input(2)
    if source is None or op.options.padding != 0 or {len(source.shape), len(op.outputs[0].shape)} != {4}:
        return OK
    sizes = zip(source.shape[1:3], op.outputs[0].shape[1:3], kernel, stride, strict=True)
    pads = [max((inner - 1) * s + k - outer, 0) for inner, outer, k, s in sizes]
    return (
        OK if all(p < k for p, k in zip(pads, kernel, strict=True)) else no(f"it is {pads} with kernel {list(kernel)}")
    )


@limit("weights of a transposed convolution must be constant INT8")
def transposed_weights(op: OpSignature, target: Target) -> Verdict:
    """Check weights of transposed convolutions."""
    w = op.input(1)
    if w is None or len(w.shape) != 4:
        return no(f"their shape is {list(w.shape) if w else 'absent'}")
    return OK if w.constant and w.dtype is DType.INT8 else no(f"they are {w.dtype}, constant: {w.constant}")


@limit("both matrices must have three dimensions")
def three_dimensions(op: OpSignature, target: Target) -> Verdict:
    """Check dimensions of batched matrix products."""
    ranks = [len(t.shape) for t in op.inputs[:2] if t is not None]
    return OK if ranks == [3, 3] else no(f"they have {ranks}", hint="merge the leading dimensions by a reshape")


@limit("both zero points must be 0")
def zero_points_are_zero(op: OpSignature, target: Target) -> Verdict:
    """Check zero points of batched matrix products."""
    zeros = [t.zero_point for t in op.inputs[:2] if t is not None]
    return OK if not any(zeros) else no(f"they are {zeros}", hint="quantize both inputs symmetrically")


@limit(f"softmax takes at most {SOFTMAX_CHANNELS_MAX} channels")
def softmax_channels(op: OpSignature, target: Target) -> Verdict:
    """Check the last dimension, over which LiteRT's softmax runs."""
    channels = op.outputs[0].shape[-1] if op.outputs[0].shape else 1
    return OK if channels <= SOFTMAX_CHANNELS_MAX else no(f"there are {channels}")


@limit(f"softmax takes at most {SOFTMAX_POSITIONS_MAX} positions (batch x height x width)")
def softmax_positions(op: OpSignature, target: Target) -> Verdict:
    """Check the number of positions, all dimensions but the last."""
    positions = math.prod(op.outputs[0].shape[:-1])
    return OK if positions <= SOFTMAX_POSITIONS_MAX else no(f"there are {positions}")


@limit(f"softmax takes at most {SOFTMAX_ELEMENTS_MAX} elements")
def softmax_elements(op: OpSignature, target: Target) -> Verdict:
    """Check the size of the whole tensor."""
    elements = math.prod(op.outputs[0].shape)
    return OK if elements <= SOFTMAX_ELEMENTS_MAX else no(f"there are {elements}")


@limit("shape, axis and padding arguments must be constant")
def static_arguments(op: OpSignature, target: Target) -> Verdict:
    """Check that integer inputs that determine the result's shape are constant."""
    for tensor in op.inputs[1:]:
        if tensor is not None and tensor.dtype in (DType.INT32, DType.INT64) and not tensor.constant:
            return no(f"{tensor.name!r} is computed at run time")
    return OK


@limit("slices must not have steps")
def unit_steps(op: OpSignature, target: Target) -> Verdict:
    """Check that STRIDED_SLICE has strides of one."""
    steps = op.input(3)
    if steps is None or steps.values is None:
        return no("the steps are not constant")
    return OK if all(step == 1 for step in steps.values.reshape(-1)) else no(f"the steps are {steps.values.tolist()}")


@limit(f"the result must have as many elements as the input, in at most {RANK_MAX} dimensions")
def plain_reshape(op: OpSignature, target: Target) -> Verdict:
    """Check reshapes and related operators."""
    x, y = op.input(0), op.outputs[0]
    sizes = [math.prod(x.shape) if x is not None else 0, math.prod(y.shape)]
    if sizes[0] != sizes[1]:
        return no(f"{sizes[0]} elements become {sizes[1]}")
    return OK if len(y.shape) <= RANK_MAX else no(f"it has {len(y.shape)} dimensions")


@limit(f"four dimensions, enlarged by {', '.join(map(str, RESIZE_FACTORS))} in height and width")
def resize_factor(op: OpSignature, target: Target) -> Verdict:
    """Check nearest and bilinear resize."""
    x, y = op.input(0), op.outputs[0]
    if x is None or len(x.shape) != 4:
        return no(f"the input is {list(x.shape) if x is not None else 'absent'}")
    for before, after in zip(x.shape[1:3], y.shape[1:3], strict=True):
        if before * (after // max(before, 1)) != after or after // max(before, 1) not in RESIZE_FACTORS:
            return no(f"{list(x.shape[1:3])} becomes {list(y.shape[1:3])}")
    return OK


@limit("mirrored padding must be of the reflecting kind")
def reflects(op: OpSignature, target: Target) -> Verdict:
    """Check the mode of MIRROR_PAD, which also has a symmetric mode."""
    return OK if op.options.mode == 0 else no("it is symmetric", hint="use reflect padding")


_POINTWISE = (known_activations,)
_BINARY = (known_activations, broadcasts_one_side)
_SHAPE = (known_activations, static_arguments, same_quantization)
_CONVOLUTION = (known_activations, four_dimensions, static_weights, static_bias, window_bounded)

LIMITS: dict[str, tuple[Limit, ...]] = {
    **dict.fromkeys(("ABS", "EXP", "LOG", "RSQRT", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "NEG"), _POINTWISE),
    **dict.fromkeys(CLAMPS, _POINTWISE),
    "SOFTMAX": (known_activations, softmax_channels, softmax_positions, softmax_elements),
    **dict.fromkeys(("ADD", "SUB", "MUL", "PRELU"), _BINARY),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), (*_BINARY, same_quantization)),
    "FULLY_CONNECTED": (known_activations, static_weights, weights_are_matrix, static_bias),
    "BATCH_MATMUL": (known_activations, three_dimensions, zero_points_are_zero),
    "CONV_2D": (*_CONVOLUTION, reduction_bounded),
    "DEPTHWISE_CONV_2D": _CONVOLUTION,
    "TRANSPOSE_CONV": (
        known_activations,
        static_arguments,
        transposed_weights,
        transposed_stride,
        transposed_kernel,
        transposed_padding,
    ),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), (known_activations, same_quantization)),
    # In a file made by NXP's converter a MEAN has different scales for input and output.
    "MEAN": (known_activations, static_arguments),
    **dict.fromkeys(("SUM", "REDUCE_MAX", "REDUCE_MIN"), _SHAPE),
    "CONCATENATION": (known_activations, same_quantization),
    **dict.fromkeys(("PAD", "PADV2", "TRANSPOSE", "SLICE"), _SHAPE),
    "MIRROR_PAD": (*_SHAPE, reflects),
    "STRIDED_SLICE": (*_SHAPE, unit_steps),
    **dict.fromkeys(sorted(VIEWS), (known_activations, same_quantization, plain_reshape)),
    **dict.fromkeys(
        ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"), (known_activations, static_arguments, resize_factor)
    ),
}


def _figures(target: Target | str) -> Target:
    if isinstance(target, Target):
        return target
    if target in targets.names():
        return targets.load(target)
    # The longest known dot product length rounds channels up the most, so it accepts the least.
    return max((targets.load(name) for name in targets.chips()), key=lambda known: known.length)


def check(signature: OpSignature, target: Target | str) -> Verdict:
    """Check whether NXP's converter takes this operator, as far as is published.

    A target may be given by name, because NXP's converter has targets that are not documented.

    Example:
        >>> check(of_operator(graph, op), "imxrt700")
        Verdict(reason=None)
    """
    where = signature.outputs[0].name if signature.outputs else ""
    limits = LIMITS.get(signature.code) if signature.outputs else None
    if limits is None:
        name = signature.code.removeprefix("CUSTOM:")
        message = f"operator {name} is not among those NXP's converter is known to take"
        return Verdict(Reason("nxp_unknown_operator", message, where, "it runs on the CPU, or use --converter open"))
    verdict = first_reason(limits, signature, _figures(target))
    if verdict.reason is not None and not verdict.reason.where:
        r = verdict.reason
        return Verdict(Reason(r.code, r.message, where, r.hint))
    return verdict
