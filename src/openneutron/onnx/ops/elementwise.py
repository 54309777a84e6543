"""Element-wise operators, with ONNX's broadcasting, which equals torch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch

from openneutron.onnx.ops import converts
from openneutron.onnx.ops._types import to

if TYPE_CHECKING:
    from openneutron.onnx.call import Call

_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Abs": torch.abs, "Neg": torch.neg, "Sqrt": torch.sqrt, "Exp": torch.exp, "Log": torch.log, "Floor": torch.floor,
    "Ceil": torch.ceil, "Round": torch.round, "Reciprocal": torch.reciprocal, "Sign": torch.sign, "Erf": torch.erf,
    "Sin": torch.sin, "Cos": torch.cos, "Tan": torch.tan, "Asin": torch.asin, "Acos": torch.acos, "Atan": torch.atan,
    "Sinh": torch.sinh, "Cosh": torch.cosh, "Asinh": torch.asinh, "Acosh": torch.acosh, "Atanh": torch.atanh,
    "IsNaN": torch.isnan, "Not": torch.logical_not, "BitwiseNot": torch.bitwise_not,
}  # fmt: skip
_BINARY: dict[str, Callable[[Any, Any], torch.Tensor]] = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Equal": torch.eq, "Greater": torch.gt, "Less": torch.lt,
    "GreaterOrEqual": torch.ge, "LessOrEqual": torch.le, "And": torch.logical_and, "Or": torch.logical_or,
    "Xor": torch.logical_xor, "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
}  # fmt: skip
# torch stores these types but has few kernels for them.
_STORED_ONLY = (torch.uint16, torch.uint32, torch.uint64)


def compute_in_int64(function: Callable[..., torch.Tensor], *operands: Any) -> torch.Tensor:
    """Wrap `function` to compute in INT64 where torch has no kernels for its operands' type."""
    kind = next((one.dtype for one in operands if isinstance(one, torch.Tensor) and one.dtype in _STORED_ONLY), None)
    if kind is None:
        return function(*operands)
    wide = [one.to(torch.int64) if isinstance(one, torch.Tensor) else one for one in operands]
    made = function(*wide)
    return made.to(kind) if made.dtype == torch.int64 else made


def operands(call: Call) -> tuple[Any, Any]:
    """Return two inputs; a one-element constant beside a float tensor becomes a number, as in PyTorch programs."""
    left, right = call.tensor(0), call.tensor(1)
    if left.is_floating_point() and right.dim() <= left.dim() and not _both_constant(call):
        number = call.scalar(1)
        if number is not None and left.dtype == right.dtype:
            return left, number
    if right.is_floating_point() and left.dim() <= right.dim() and not _both_constant(call):
        number = call.scalar(0)
        if number is not None and left.dtype == right.dtype:
            return number, right
    return left, right


def _both_constant(call: Call) -> bool:
    return call.value(0).data is not None and call.value(1).data is not None


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    return lambda call: compute_in_int64(function, call.tensor(0))


def _binary(function: Callable[[Any, Any], torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    def convert(call: Call) -> torch.Tensor:
        left, right = operands(call)
        if not isinstance(left, torch.Tensor):
            return _with_number_left(function, left, right)
        return compute_in_int64(function, left, right)

    return convert


def _with_number_left(
    function: Callable[[Any, Any], torch.Tensor], number: float | int, right: torch.Tensor
) -> torch.Tensor:
    """Compute with a number on the left; commutative operators take it on the right."""
    if function in (torch.add, torch.mul):
        return function(right, number)
    if function is torch.sub:
        return torch.rsub(right, number)
    flipped = {torch.gt: torch.lt, torch.lt: torch.gt, torch.ge: torch.le, torch.le: torch.ge}
    return flipped.get(function, function)(right, number)


for _name, _function in _UNARY.items():
    converts(_name)(_unary(_function))
for _name, _pair in _BINARY.items():
    converts(_name)(_binary(_pair))


@converts("Div")
def div(call: Call) -> torch.Tensor:
    """Divide; integers round toward zero."""
    left, right = operands(call)
    if not isinstance(left, torch.Tensor):
        return torch.reciprocal(right) if left == 1 else torch.mul(torch.reciprocal(right), left)
    if left.is_floating_point():
        return torch.div(left, right)
    return compute_in_int64(lambda a, b: torch.div(a, b, rounding_mode="trunc"), left, right)


@converts("Pow")
def power(call: Call) -> torch.Tensor:
    """Raise to a power, in the type of the base."""
    base, exponent = call.tensor(0), call.tensor(1)
    number = call.scalar(1)
    if number is not None and exponent.dim() <= base.dim() and base.is_floating_point():
        if number in (2, 0.5):
            return base * base if number == 2 else torch.sqrt(base)
        return torch.pow(base, number)
    if base.is_floating_point() or exponent.is_floating_point():
        return torch.pow(base.double() if not base.is_floating_point() else base, exponent).to(base.dtype)
    return compute_in_int64(torch.pow, base, to(exponent, base.dtype))


@converts("Mod")
def mod(call: Call) -> torch.Tensor:
    """Return the remainder, with the divisor's sign, or with `fmod` the dividend's."""
    return compute_in_int64(
        torch.fmod if call.attribute("fmod", 0) else torch.remainder, call.tensor(0), call.tensor(1)
    )


@converts("BitShift")
def bit_shift(call: Call) -> torch.Tensor:
    """Shift bits to the left or to the right."""
    left = call.text("direction", "", ("LEFT", "RIGHT")) == "LEFT"
    function = torch.bitwise_left_shift if left else torch.bitwise_right_shift
    return compute_in_int64(function, call.tensor(0), call.tensor(1))


def _variadic(function: Callable[[Any, Any], torch.Tensor]) -> Callable[[Call], torch.Tensor]:
    def all_of(call: Call) -> torch.Tensor:
        inputs = [call.tensor(at) for at in range(len(call.inputs)) if not _is_neutral(call, at)] or call.tensors()
        return reduce(lambda a, b: compute_in_int64(function, a, b), inputs)

    return all_of


def _is_neutral(call: Call, index: int) -> bool:
    """Return whether an operand has no effect: -inf in Max, +inf in Min. No scale could store it."""
    data = call.value(index).data
    if data is None or data.dim() or not data.is_floating_point():
        return False
    return float(call.constant_input(index)) == {"Max": -math.inf, "Min": math.inf}.get(call.node.op_type)


for _name, _pair in {"Sum": torch.add, "Max": torch.maximum, "Min": torch.minimum}.items():
    converts(_name)(_variadic(_pair))


@converts("Mean")
def mean(call: Call) -> torch.Tensor:
    """Return the mean of several tensors."""
    inputs = call.tensors()
    return reduce(torch.add, inputs) * (1.0 / len(inputs))


@converts("IsInf")
def is_inf(call: Call) -> torch.Tensor:
    """Find infinities of one or both signs."""
    x = call.tensor(0)
    found = torch.zeros_like(x, dtype=torch.bool)
    if call.attribute("detect_positive", 1):
        found = found | (x == float("inf"))
    return found | (x == float("-inf")) if call.attribute("detect_negative", 1) else found


@converts("Where")
def where(call: Call) -> torch.Tensor:
    """Choose between two values by a condition."""
    return torch.where(*call.tensors())


def cast(call: Call, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert a tensor to another type; float to integer wraps as in C, and float8 saturates by default."""
    if x.dtype == dtype:
        return x
    if "float8" in str(dtype):
        return _to_float8(x.float(), dtype, bool(call.attribute("saturate", 1)))
    if "float8" in str(x.dtype):
        x = x.float()
    if x.is_floating_point() and dtype == torch.bool:
        return x != 0  # a comparison, which the NPU has
    if x.is_floating_point() and dtype in (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32):
        return x.to(torch.int64).to(dtype)
    return x.to(dtype)


def _to_float8(x: torch.Tensor, dtype: torch.dtype, saturate: bool) -> torch.Tensor:
    largest = torch.finfo(dtype).max
    if saturate:
        return torch.where(torch.isnan(x), x, x.clamp(-largest, largest)).to(dtype)
    return x.to(dtype)


@converts("Cast")
def cast_to(call: Call) -> torch.Tensor:
    """Convert to another type."""
    return _narrow(call, cast(call, call.tensor(0), call.dtype(int(call.attribute("to", 0)))))


def _narrow(call: Call, x: torch.Tensor) -> torch.Tensor:
    """Wrap 4-bit integers, which are stored in 8 bits, at 4 bits."""
    from openneutron.onnx.tensors import type_name

    name = type_name(int(call.attribute("to", 0)))
    if name not in ("INT4", "UINT4", "INT2", "UINT2"):
        return x
    bits = int(name[-1])
    low = x.to(torch.int32) & ((1 << bits) - 1)
    if name.startswith("INT"):
        low = torch.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return low.to(x.dtype)


@converts("CastLike")
def cast_like(call: Call) -> torch.Tensor:
    """Convert to the type of another tensor."""
    return cast(call, call.tensor(0), call.tensor(1).dtype)


@converts("BitCast")
def bit_cast(call: Call) -> torch.Tensor:
    """Read the same bits as another type."""
    return call.tensor(0).contiguous().view(call.dtype(int(call.attribute("to", 0))))


@converts("Dropout")
def dropout(call: Call) -> tuple[torch.Tensor, ...]:
    """Return the input: dropout has no effect outside of training."""
    x = call.tensor(0)
    if call.has(2) and call.version >= 12:
        ratio = float(call.constant_input(1).reshape(-1)[0]) if call.has(1) else 0.5
        if bool(call.constant_input(2).reshape(-1)[0]) and ratio:
            raise call.refuse("it drops values at random, as in training", "export the model in evaluation mode")
    return x, torch.ones_like(x, dtype=torch.bool)


@converts("CumSum")
def cumsum(call: Call) -> torch.Tensor:
    """Return cumulative sums."""
    x, axis = call.tensor(0), call.numbers(1)[0]
    x = x.flip(axis) if call.attribute("reverse", 0) else x
    y = torch.cumsum(x, axis) if x.is_floating_point() else torch.cumsum(x, axis, dtype=x.dtype)
    y = y - x if call.attribute("exclusive", 0) else y
    return y.flip(axis) if call.attribute("reverse", 0) else y


@converts("CumProd")
def cumprod(call: Call) -> torch.Tensor:
    """Return cumulative products."""
    x, axis = call.tensor(0), call.numbers(1)[0]
    x = x.flip(axis) if call.attribute("reverse", 0) else x
    if call.attribute("exclusive", 0):
        ones = torch.ones_like(x.narrow(axis, 0, 1))
        x = torch.cat([ones, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    y = torch.cumprod(x, axis, dtype=x.dtype)
    return y.flip(axis) if call.attribute("reverse", 0) else y


@converts("Det")
def det(call: Call) -> torch.Tensor:
    """Return determinants."""
    return torch.linalg.det(call.tensor(0))
