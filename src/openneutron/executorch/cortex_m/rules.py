"""Rules for Cortex-M operators: one small function per condition, whose sentence the report shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from openneutron.executorch.fx import GETITEM, arguments, is_dequantize, operator_name, shape_of
from openneutron.executorch.lower.encoding import Constants, Encoding
from openneutron.litert.graph import DType

_LOW, _HIGH = -128, 127  # INT8
_SOFTMAX = (1 / 256, -128)  # fixed output encoding of CMSIS-NN's softmax


@dataclass(frozen=True)
class Context:
    """An operator with the quantization parameters around it; inputs are keyed by their dequantize."""

    node: Node
    given: Mapping[str, Any]
    inputs: Mapping[Node, Encoding]
    output: Encoding
    constants: Constants

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of all its input tensors."""
        return [shape_of(node) for node in self.node.all_input_nodes]


Rule = Callable[[Context], str]


def is_activation(node: Node) -> bool:
    """Return whether Cortex-M's passes can fuse the node into the operator before it."""
    return operator_name(node) in ("aten.relu.default", "aten.hardtanh.default", "aten.clamp.default")


def activation_fits(node: Node, output: Encoding) -> str:
    """A fused activation narrows the range of the result, which must start and end where the activation does."""
    low, high = _bounds(node)
    scale, zero = output.quantization.scale[0], output.quantization.zero_point[0]
    first = _LOW if low is None else _quantize(low, scale, zero)
    last = _HIGH if high is None else _quantize(high, scale, zero)
    if (first, last) != (_LOW, _HIGH):
        return f"{operator_name(node)} leaves part of its stored range unused, and Cortex-M then does not fuse it"
    return ""


def int8(context: Context) -> str:
    """Activations in and out must be INT8."""
    kinds = {e.dtype for e in (*context.inputs.values(), context.output) if e.dtype is not DType.INT32}
    return "" if kinds == {DType.INT8} else f"it stores {', '.join(sorted(str(kind) for kind in kinds))}"


def all_quantized(context: Context) -> str:
    """Every tensor operand must be dequantized."""
    loose = [node.name for node in context.node.all_input_nodes if not is_dequantize(node)]
    return f"{loose[0]} is not quantized" if loose else ""


def same_shapes(context: Context) -> str:
    """Operands must have one shape."""
    return "" if len(set(context.shapes)) == 1 else f"it broadcasts {' and '.join(map(str, context.shapes))}"


def same_encoding(context: Context) -> str:
    """Operators that move stored values must have the same parameters on both sides."""
    found = {encoding.quantization for encoding in (*context.inputs.values(), context.output)}
    return "" if len(found) == 1 else "its input and result are stored with differing parameters"


def unit_alpha(context: Context) -> str:
    """The factor of add and sub must be an integer."""
    alpha = context.given.get("alpha", 1)
    return "" if isinstance(alpha, int) and not isinstance(alpha, bool) else f"alpha is {alpha}"


def constant_weights(context: Context) -> str:
    """Weights must be constants in [-127, 127] without zero points; the bias must be constant or absent."""
    weight, bias = context.given["weight"], context.given.get("bias")
    if not is_dequantize(weight) or weight.args[0] not in context.constants:
        return "its weights are not constant"
    if any(context.inputs[weight].quantization.zero_point):
        return "its weights have zero points"
    source = bias.args[0] if isinstance(bias, Node) and is_dequantize(bias) else bias
    return "" if source is None or source in context.constants else "its bias is not constant"


def one_weight_scale(context: Context) -> str:
    """A linear layer must have one weight scale."""
    count = len(context.inputs[context.given["weight"]].quantization.scale)
    return "" if count == 1 else f"its weights have {count} scales"


def image(context: Context) -> str:
    """Convolution and pooling must have 4-dimensional inputs."""
    rank = len(context.shapes[0])
    return "" if rank == 4 else f"its input has {rank} dimensions"


def plain_transposed(context: Context) -> str:
    """A transposed convolution must not have groups, dilation or output padding."""
    if not context.given["transposed"]:
        return ""
    extra = [*context.given["output_padding"], context.given["groups"] - 1, *(d - 1 for d in context.given["dilation"])]
    return "transposed with groups, dilation or output padding" if any(extra) else ""


def plain_average(context: Context) -> str:
    """Average pooling must not set its divisor, and padding must be supported by the padding kernel."""
    if context.given["divisor_override"] is not None:
        return "it has a divisor of its own"
    _, channels, height, width = context.shapes[0]
    pads = any(context.given["padding"]) and context.given["count_include_pad"]
    thin = height == 1 or (width == 1 and channels == 1)
    return "it pads an image one pixel high" if pads and thin else ""


def plain_maximum(context: Context) -> str:
    """Max pooling must not have dilation, ceil mode or readers of its indices."""
    if any(d != 1 for d in context.given["dilation"] or [1]) or context.given["ceil_mode"]:
        return "it has dilation or ceil mode"
    read = {user.args[1] for user in context.node.users if operator_name(user) == GETITEM}
    return "its indices are read" if read - {0} else ""


def last_softmax(context: Context) -> str:
    """Softmax must run over the last dimension and store steps of 1/256 from -128."""
    rank = len(context.shapes[0])
    if rank == 4 or context.given["dim"] % rank != rank - 1:
        return f"it runs over dimension {context.given['dim']} of {rank}"
    scale, zero = context.output.quantization.scale[0], context.output.quantization.zero_point[0]
    return "" if (scale, zero) == _SOFTMAX else f"its result has scale {scale:.6g} and zero point {zero}"


def small_rank(context: Context) -> str:
    """Data moves must have at most four dimensions."""
    rank = len(context.shapes[0])
    return "" if rank <= 4 else f"it has {rank} dimensions"


def matrices(context: Context) -> str:
    """Batched products must have three dimensions."""
    return "" if all(len(shape) == 3 for shape in context.shapes) else f"its operands are {context.shapes}"


def exact_gelu(context: Context) -> str:
    """GELU must be the exact function, which the table holds."""
    kind = context.given.get("approximate", "none")
    return "" if kind == "none" else f"it approximates by {kind}"


def finite_bounds(context: Context) -> str:
    """The bounds must be finite numbers."""
    return "" if any(bound is not None for bound in _bounds(context.node)) else "it has no bounds"


def _all(*rules: Rule) -> Rule:
    def check(context: Context) -> str:
        return next((reason for rule in rules if (reason := rule(context))), "")

    return check


_LAYER = (int8, constant_weights)
_POINTWISE = (int8, all_quantized, same_shapes)
_MOVE = _all(int8, all_quantized, same_encoding)
_TABLE = _all(int8, all_quantized)
_CLAMP = _all(int8, all_quantized, same_encoding, finite_bounds)

RULES: dict[str, Rule] = {
    "aten.add.Tensor": _all(*_POINTWISE, unit_alpha),
    "aten.sub.Tensor": _all(*_POINTWISE, unit_alpha),
    "aten.mul.Tensor": _all(*_POINTWISE),
    "aten.div.Tensor": _all(*_POINTWISE),
    "aten.minimum.default": _all(*_POINTWISE, same_encoding),
    "aten.maximum.default": _all(*_POINTWISE, same_encoding),
    "aten.bmm.default": _all(int8, all_quantized, matrices),
    "aten.linear.default": _all(*_LAYER, one_weight_scale),
    "aten.convolution.default": _all(*_LAYER, image, plain_transposed),
    "aten.avg_pool2d.default": _all(int8, all_quantized, image, same_encoding, plain_average),
    "aten.max_pool2d_with_indices.default": _all(int8, all_quantized, image, same_encoding, plain_maximum),
    "aten._softmax.default": _all(int8, all_quantized, last_softmax),
    "aten.gelu.default": _all(int8, all_quantized, exact_gelu),
    **{f"aten.{name}.default": _TABLE for name in ("sigmoid", "tanh", "silu", "sqrt", "rsqrt")},
    **{f"aten.{name}.default": _TABLE for name in ("log", "log2", "log10", "log1p")},
    **{f"aten.{name}.default": _CLAMP for name in ("relu", "hardtanh", "clamp")},
    "aten.permute_copy.default": _all(_MOVE, small_rank),
    "aten.constant_pad_nd.default": _all(_MOVE, small_rank),
    # Operators without a Cortex-M form: portable kernels that move stored INT8 values, a quarter of the bytes of float.
    **{
        f"aten.{name}": _MOVE
        for name in (
            "view_copy.default", "slice_copy.Tensor", "select_copy.int", "cat.default", "expand_copy.default",
            "unsqueeze_copy.default", "squeeze_copy.dims", "flip.default", "index_select.default", "clone.default",
        )
    },
}  # fmt: skip


def _bounds(node: Node) -> tuple[float | None, float | None]:
    given = arguments(node)
    if operator_name(node) == "aten.relu.default":
        return 0.0, None
    low, high = ("min_val", "max_val") if operator_name(node) == "aten.hardtanh.default" else ("min", "max")
    return _number(given[low]), _number(given[high])


def _number(value: Any) -> float | None:
    if value is None or not isinstance(value, (int, float)) or math.isinf(value):
        return None
    return float(value)


def _quantize(value: float, scale: float, zero: int) -> int:
    return max(_LOW, min(_HIGH, round(value / scale + zero)))
