"""Edge rules: ExecuTorch's decompositions of the ATen operators in quantized networks.

A rule appends Edge calls to a draft and returns the one that replaces the node. If a rule does not know the result, it
raises `Unknown`, and ExecuTorch's own retracing converts the program.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch.fx import Node

from openneutron.executorch.edge.draft import Draft, Unknown
from openneutron.executorch.fx import GETITEM, arguments, operator_name, shape_of, value_of
from openneutron.executorch.operators import lowerings
from openneutron.executorch.upstream.names import OpOverload, schema_of

aten = torch.ops.aten
Rule = Callable[[Draft, Node], Node]

_QD: Final = "quantized_decomposed."
# Operators that ExecuTorch neither decomposes nor rewrites.
UNCHANGED: Final = frozenset(
    {f"{_QD}{kind}_per_{what}.default" for kind in ("quantize", "dequantize") for what in ("tensor", "channel")}
    | {
        f"aten.{name}"
        for name in (
            "_softmax.default", "abs.default", "acos.default", "acosh.default", "add.Tensor", "addmm.default",
            "amax.default", "amin.default", "argmax.default", "argmin.default", "asin.default", "asinh.default",
            "atan.default", "atanh.default", "avg_pool2d.default", "bmm.default", "cat.default", "ceil.default",
            "clamp.default", "constant_pad_nd.default", "convolution.default", "cos.default", "cosh.default",
            "cumsum.default", "div.Tensor", "elu.default", "embedding.default", "erf.default", "exp.default",
            "expm1.default", "flip.default", "floor.default", "gelu.default", "hardtanh.default", "index.Tensor",
            "index_put.default", "index_select.default", "leaky_relu.default", "log.default", "log10.default",
            "log1p.default", "log2.default", "maximum.default", "mean.default", "mean.dim", "minimum.default",
            "mm.default", "mul.Tensor", "neg.default", "pow.Tensor_Scalar", "reciprocal.default", "relu.default",
            "repeat.default", "round.default", "rsqrt.default", "sigmoid.default", "sign.default", "sin.default",
            "sinh.default", "sqrt.default", "sub.Tensor", "sum.dim_IntList", "tan.default", "tanh.default",
            "trunc.default", "upsample_bilinear2d.vec", "upsample_nearest2d.vec",
        )
    }
    | {"openneutron.whole.default"}
)  # fmt: skip
# ExecuTorch converts the operands of these to one type.
_ONE_TYPE: Final = frozenset(
    {f"aten.{name}.Tensor" for name in ("add", "div", "mul", "sub")} | {"aten.minimum.default"}
)


def is_redundant(node: Node) -> bool:
    """Return whether a call only asserts what the value's type and shape already show: ExecuTorch drops it."""
    return operator_name(node) == "aten._assert_tensor_metadata.default"


def write(draft: Draft, node: Node, whole: frozenset[OpOverload]) -> Node:
    """Append the Edge form of a call; operators in `whole` are not decomposed."""
    draft.source = node
    target = node.target
    if target is operator.getitem:
        several = draft.made[node.args[0]]  # type: ignore[index]
        return draft.item(several, node.args[1])  # type: ignore[arg-type]
    if not isinstance(target, OpOverload):
        raise Unknown(str(target))
    if target in whole:
        return keep_call(draft, node)
    rule = RULES.get(operator_name(node))
    if rule is None:
        raise Unknown(operator_name(node))
    return rule(draft, node)


def is_known(node: Node) -> bool:
    """Return whether a call has a rule, or may stay whole."""
    name = operator_name(node)
    return name in RULES or name == GETITEM or name in lowerings()


def keep_call(draft: Draft, node: Node) -> Node:
    """Append the call unchanged."""
    args, kwargs = plain_arguments(node)
    _check_tensors(node, args)
    assert isinstance(node.target, OpOverload)
    return draft.call_like(node.target, *draft.of(args), **draft.of(kwargs))


def plain_arguments(node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments in the form of a trace: by position where possible, omitting arguments equal to their defaults."""
    assert isinstance(node.target, OpOverload)
    positional: list[Any] = []
    kwargs: dict[str, Any] = {}
    needed = 0
    given = arguments(node)
    for argument in schema_of(node.target).arguments:
        value = given[argument.name]
        is_default = argument.has_default_value() and _equal(argument.default_value, value)
        if argument.kwarg_only:
            if not is_default:
                kwargs[argument.name] = value
            continue
        positional.append(value)
        if not is_default:
            needed = len(positional)
    return tuple(positional[:needed]), kwargs


def _equal(default: Any, value: Any) -> bool:
    if isinstance(value, Node) or (type(default) is not type(value) and not isinstance(value, (list, tuple))):
        return False
    if isinstance(value, (list, tuple)):
        return isinstance(default, list) and default == list(value)
    return bool(default == value)


def _check_tensors(node: Node, args: Sequence[Any]) -> None:
    """Raise `Unknown` for numbers in place of tensors and for mixed types, which ExecuTorch converts."""
    assert isinstance(node.target, OpOverload)
    kinds: set[Any] = set()
    for argument, value in zip(schema_of(node.target).arguments, args, strict=False):
        if not isinstance(argument.type, torch.TensorType):
            continue
        if isinstance(value, (bool, int, float)):
            raise Unknown(f"{operator_name(node)} of a number")
        kinds.add(getattr(value_of(value), "dtype", None) if isinstance(value, Node) else None)
    if len(kinds) > 1 and operator_name(node) in _ONE_TYPE:
        raise Unknown(f"{operator_name(node)} of several types")


def _convolution(dimensions: int, *, transposed: bool = False) -> Rule:
    def rule(draft: Draft, node: Node) -> Node:
        given = arguments(node)
        if (shape_of(node) and len(shape_of(node)) != dimensions + 2) or isinstance(given["padding"], str):
            raise Unknown(f"{operator_name(node)} of this shape")
        stride, padding, dilation = (_each(given[name], dimensions) for name in ("stride", "padding", "dilation"))
        more = _each(given["output_padding"], dimensions) if transposed else [0] * dimensions
        tensors = draft.of((given["input"], given["weight"], given["bias"]))
        return draft.call_like(
            aten.convolution.default, *tensors, stride, padding, dilation, transposed, more, given["groups"]
        )

    return rule


def _each(value: Any, count: int) -> list[int]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    return found * count if len(found) == 1 else found


def _linear(draft: Draft, node: Node) -> Node:
    """Append a product of two matrices, with all leading dimensions folded into the rows."""
    given = arguments(node)
    shape, strided = shape_of(given["input"]), value_of(given["input"])
    x, weight, bias = draft.of((given["input"], given["weight"], given["bias"]))
    if len(shape) < 2 or len(shape_of(given["weight"])) != 2 or (len(shape) > 2 and not strided.is_contiguous()):
        raise Unknown("aten.linear of this shape")
    rows = [math.prod(shape[:-1]), shape[-1]] if len(shape) > 2 else []
    if rows and bias is not None:
        x = draft.call(aten.view_copy.default, x, rows)
    turned = draft.call(aten.permute_copy.default, weight, [1, 0])
    if rows and bias is None:
        x = draft.call(aten.view_copy.default, x, rows)
    call = draft.call if rows else draft.call_like
    made = call(aten.mm.default, x, turned) if bias is None else call(aten.addmm.default, bias, x, turned)
    return draft.call(aten.view_copy.default, made, list(shape_of(node))) if rows else made


def _view(draft: Draft, node: Node) -> Node:
    return draft.call(aten.view_copy.default, draft.of(node.args[0]), list(node.args[1]))  # type: ignore[call-overload]


def _reshape(draft: Draft, node: Node) -> Node:
    """Append a view, or a copy and a view of it where strides do not allow one."""
    source = node.args[0]
    assert isinstance(source, Node)
    shape = list(shape_of(node))
    if node.target is not aten.reshape.default and shape == list(shape_of(source)):
        raise Unknown(f"{operator_name(node)} to the same shape")
    if node.target is aten.reshape.default and _can_view(value_of(source), shape):
        return _view(draft, node)  # a size of -1 is kept
    return _reshape_value(draft, draft.made[source], value_of(source), shape)


def _reshape_as(draft: Draft, node: Node) -> Node:
    source, like = node.args
    assert isinstance(source, Node) and isinstance(like, Node)
    if len(like.users) == 1 and like is not source:
        raise Unknown("aten.reshape_as what nobody else reads")
    return _reshape_value(draft, draft.made[source], value_of(source), list(shape_of(node)))


def _reshape_value(draft: Draft, x: Node, strided: torch.Tensor, shape: list[int]) -> Node:
    """Append a reshape; `strided` is the value before Edge replaced views by copies, which decides between view and copy."""
    if not _can_view(strided, shape):
        x = _clone_in_order(draft, x, list(range(strided.dim())))
    return draft.call(aten.view_copy.default, x, shape)


def _can_view(value: torch.Tensor, shape: list[int]) -> bool:
    try:
        torch.empty_strided(value.shape, value.stride(), device="meta").view(shape)
    except RuntimeError:
        return False
    return True


def _clone(draft: Draft, node: Node) -> Node:
    x = draft.of(node.args[0])
    order = arguments(node)["memory_format"]
    if order is torch.contiguous_format:
        return _clone_in_order(draft, x, list(range(len(shape_of(node)))))
    if order not in (None, torch.preserve_format):
        raise Unknown("aten.clone to an order of dimensions")
    return _clone_in_order(draft, x, [int(one) for one in value_of(x).dim_order()])


def _contiguous(draft: Draft, node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)
    if len(node.args) > 1 or node.kwargs or value_of(source).is_contiguous():
        raise Unknown("aten.contiguous of this order")
    return _clone_in_order(draft, draft.made[source], list(range(len(shape_of(node)))))


def _clone_in_order(draft: Draft, x: Node, order: list[int]) -> Node:
    import executorch.exir.passes.dim_order_ops_registry  # noqa: F401  defines the operator

    return draft.call(torch.ops.dim_order_ops._clone_dim_order.default, x, dim_order=order)


def _copy_of(target: OpOverload) -> Rule:
    """Return a rule that replaces a view operator by Edge's copying form, with the same arguments."""

    def rule(draft: Draft, node: Node) -> Node:
        args, kwargs = plain_arguments(node)
        if kwargs:
            raise Unknown(f"{operator_name(node)} with {', '.join(kwargs)}")
        return draft.call(target, *draft.of(args))

    return rule


def _squeeze(draft: Draft, node: Node) -> Node:
    x = draft.of(node.args[0])
    given = node.args[1] if len(node.args) > 1 else list(range(len(shape_of(x))))
    return draft.call(aten.squeeze_copy.dims, x, _each(given, 1))


def _expand_as(draft: Draft, node: Node) -> Node:
    return draft.call(aten.expand_copy.default, draft.of(node.args[0]), list(shape_of(node)))


def _narrow(draft: Draft, node: Node) -> Node:
    x, dimension, start, length = node.args
    if shape_of(node) == shape_of(x):  # type: ignore[arg-type]
        raise Unknown("aten.narrow of everything")
    return draft.call(aten.slice_copy.Tensor, draft.of(x), dimension, start, start + length)  # type: ignore[operator]


def _stack(draft: Draft, node: Node) -> Node:
    given = arguments(node)
    dimension = given["dim"] % len(shape_of(node))
    if dimension == len(shape_of(node)) - 1:
        raise Unknown("aten.stack behind the last dimension")
    joined = draft.call(aten.cat.default, draft.of(given["tensors"]), *([dimension] if dimension else []))
    return draft.call(aten.view_copy.default, joined, list(shape_of(node)))


def _concat(draft: Draft, node: Node) -> Node:
    return draft.call_like(aten.cat.default, *draft.of(plain_arguments(node)[0]))


def _relu6(draft: Draft, node: Node) -> Node:
    return draft.call_like(aten.hardtanh.default, draft.of(node.args[0]), 0, 6)


def _clamp_min(draft: Draft, node: Node) -> Node:
    return draft.call_like(aten.clamp.default, *draft.of(node.args))


def _clamp_max(draft: Draft, node: Node) -> Node:
    return draft.call_like(aten.clamp.default, draft.of(node.args[0]), None, node.args[1])


def _slice(draft: Draft, node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)
    if shape_of(node) == shape_of(source):
        raise Unknown("aten.slice of everything")
    return _copy_of(aten.slice_copy.Tensor)(draft, node)


def _transpose(draft: Draft, node: Node) -> Node:
    source, first, second = node.args if len(node.args) == 3 else (node.args[0], 0, 1)
    assert isinstance(source, Node) and isinstance(first, int) and isinstance(second, int)
    order = list(range(len(shape_of(source))))
    order[first], order[second] = order[second], order[first]
    return draft.call(aten.permute_copy.default, draft.made[source], order)


def _max_pool(draft: Draft, node: Node) -> Node:
    args, _ = plain_arguments(node)
    several = draft.call(aten.max_pool2d_with_indices.default, *draft.of(args))
    return draft.item(several, 0)


def _softmax(draft: Draft, node: Node) -> Node:
    given = arguments(node)
    if given["dtype"] is not None:
        raise Unknown("aten.softmax to another type")
    return draft.call_like(aten._softmax.default, draft.of(given["self"]), given["dim"], False)


def _adaptive_pool(draft: Draft, node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)
    if list(node.args[1]) != [1, 1] or len(shape_of(source)) != 4 or not value_of(source).is_contiguous():  # type: ignore[arg-type]
        raise Unknown("aten.adaptive_avg_pool2d to this size")
    return draft.call_like(aten.mean.dim, draft.made[source], [-1, -2], True)


def _adaptive_pool_1d(draft: Draft, node: Node) -> Node:
    source = node.args[0]
    assert isinstance(source, Node)
    if list(node.args[1]) != [1] or len(shape_of(source)) != 3:  # type: ignore[arg-type]
        raise Unknown("aten.adaptive_avg_pool1d to this size")
    image = draft.call(aten.unsqueeze_copy.default, draft.made[source], -2)
    mean = draft.call(aten.mean.dim, image, [-1, -2], True)
    return draft.call(aten.squeeze_copy.dims, mean, [-2])


def _pad(draft: Draft, node: Node) -> Node:
    given = arguments(node)
    if given["mode"] != "constant":
        raise Unknown(f"aten.pad by {given['mode']}")
    value = given["value"]
    args = (given["self"], list(given["pad"]), value if value is not None else 0.0)
    return draft.call_like(aten.constant_pad_nd.default, *draft.of(args))


def _matmul(draft: Draft, node: Node) -> Node:
    """Append a product of rows by a matrix, or of batches, folded as PyTorch does."""
    left, right = node.args
    assert isinstance(left, Node) and isinstance(right, Node)
    a, b = shape_of(left), shape_of(right)
    if len(a) == len(b) == 2:
        return draft.call_like(aten.mm.default, draft.made[left], draft.made[right])
    if len(b) == 2 and len(a) > 2 and value_of(left).is_contiguous():
        rows = draft.call(aten.view_copy.default, draft.made[left], [math.prod(a[:-1]), a[-1]])
        product = draft.call(aten.mm.default, rows, draft.made[right])
        return draft.call(aten.view_copy.default, product, list(shape_of(node)))
    if len(a) < 3 or len(b) < 3:
        raise Unknown("aten.matmul of these shapes")
    batches = list(shape_of(node)[:-2])
    folded = []
    for source, shape in ((left, a), (right, b)):
        wide = draft.call(aten.expand_copy.default, draft.made[source], [*batches, *shape[-2:]])
        strided = value_of(source).expand(*batches, *shape[-2:])
        folded.append(_reshape_value(draft, wide, strided, [math.prod(batches), *shape[-2:]]))
    product = draft.call(aten.bmm.default, *folded)
    return draft.call(aten.view_copy.default, product, list(shape_of(node)))


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(UNCHANGED, keep_call),
    "aten.conv1d.default": _convolution(1),
    "aten.conv2d.default": _convolution(2),
    "aten.conv_transpose2d.input": _convolution(2, transposed=True),
    "aten.linear.default": _linear,
    "aten.conv_transpose1d.default": _convolution(1, transposed=True),
    "aten.view.default": _view,
    "aten.reshape.default": _reshape,
    "aten.flatten.using_ints": _reshape,
    "aten.unflatten.int": _reshape,
    "aten.reshape_as.default": _reshape_as,
    "aten.contiguous.default": _contiguous,
    "aten.clone.default": _clone,
    "aten.alias.default": _copy_of(aten.alias_copy.default),
    "aten.detach.default": _copy_of(aten.alias_copy.default),
    "aten.expand.default": _copy_of(aten.expand_copy.default),
    "aten.expand_as.default": _expand_as,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.narrow.default": _narrow,
    "aten.stack.default": _stack,
    "aten.concat.default": _concat,
    "aten.concatenate.default": _concat,
    "aten.relu6.default": _relu6,
    "aten.clamp_min.default": _clamp_min,
    "aten.clamp_max.default": _clamp_max,
    "aten.t.default": _transpose,
    "aten.permute.default": _copy_of(aten.permute_copy.default),
    "aten.select.int": _copy_of(aten.select_copy.int),
    "aten.unsqueeze.default": _copy_of(aten.unsqueeze_copy.default),
    "aten.slice.Tensor": _slice,
    "aten.transpose.int": _transpose,
    "aten.max_pool2d.default": _max_pool,
    "aten.softmax.int": _softmax,
    "aten.adaptive_avg_pool2d.default": _adaptive_pool,
    "aten.adaptive_avg_pool1d.default": _adaptive_pool_1d,
    "aten.pad.default": _pad,
    "aten.matmul.default": _matmul,
}
