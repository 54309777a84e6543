"""Evaluates the functions behind tables: a composite names the float operators that its table was made from.

The text has one operator per line, such as `a=aten.exp.default(self=x)`; the last one is the result. Each function is
evaluated twice, in double and with every result rounded to float32. The table entry must lie between the two results, with
some tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from openneutron.certify.numbers import clamp, f32

_SLACK = 1 / 64  # of a step: float32 operations in another order differ by less
Value = float


class Unknown(ValueError):
    """An operator of the text is not known here, or the attributes are damaged."""


def _divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _power(a: float, b: float) -> float:
    try:
        made = a**b
    except ZeroDivisionError:
        return math.inf
    return math.nan if isinstance(made, complex) else made


def _log(function: Callable[[float], float], edge: float) -> Callable[[float], float]:
    return lambda x: function(x) if x > edge else -math.inf if x == edge else math.nan


def _round_to_even(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(function(x)) if math.isfinite(x) else x


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _softplus(x: float, beta: float, threshold: float) -> float:
    return x if x * beta > threshold else math.log1p(math.exp(x * beta)) / beta


def _cut(x: float, low: Any, top: Any) -> float:
    x = x if low is None else max(x, low)
    return x if top is None else min(x, top)


_ONE: dict[str, Callable[[float], float]] = {
    "abs": abs, "neg": lambda x: -x, "exp": math.exp, "expm1": math.expm1, "log": _log(math.log, 0.0),
    "log1p": _log(math.log1p, -1.0), "log2": _log(math.log2, 0.0), "log10": _log(math.log10, 0.0), "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh,
    "asin": lambda x: math.asin(x) if abs(x) <= 1 else math.nan, "acos": lambda x: math.acos(x) if abs(x) <= 1 else math.nan,
    "atan": math.atan, "acosh": lambda x: math.acosh(x) if x >= 1 else math.nan,
    "atanh": lambda x: math.atanh(x) if abs(x) < 1 else math.copysign(math.inf, x) if abs(x) == 1 else math.nan,
    "sqrt": _sqrt, "rsqrt": lambda x: _divide(1.0, _sqrt(x)), "reciprocal": lambda x: _divide(1.0, x),
    "square": lambda x: x * x, "sigmoid": _sigmoid, "relu": lambda x: max(x, 0.0), "silu": lambda x: x * _sigmoid(x),
    "erf": math.erf, "erfc": math.erfc, "floor": _whole(math.floor), "ceil": _whole(math.ceil), "trunc": _whole(math.trunc),
    "round": _round_to_even, "sign": lambda x: float((x > 0) - (x < 0)), "clone": lambda x: x, "alias_copy": lambda x: x,
    "_clone_dim_order": lambda x: x, "_to_dim_order_copy": lambda x: x, "logical_not": lambda x: float(not x),
    "hardsigmoid": lambda x: min(max(x + 3, 0.0), 6.0) / 6, "hardswish": lambda x: x * min(max(x + 3, 0.0), 6.0) / 6,
    "mish": lambda x: x * math.tanh(_softplus(x, 1.0, 20.0)), "isnan": lambda x: float(math.isnan(x)),
    "exp2": lambda x: 2.0**x, "frac": lambda x: x - math.trunc(x), "log_sigmoid": lambda x: math.log(max(_sigmoid(x), 1e-300)),
}  # fmt: skip
_TWO: dict[str, Callable[[float, float], float]] = {
    "mul": lambda a, b: a * b, "div": _divide, "pow": _power, "maximum": max, "minimum": min, "atan2": math.atan2,
    "remainder": lambda a, b: math.nan if b == 0 else a - b * math.floor(a / b),
    "fmod": lambda a, b: math.nan if b == 0 else math.fmod(a, b), "gt": lambda a, b: float(a > b),
    "lt": lambda a, b: float(a < b), "ge": lambda a, b: float(a >= b), "le": lambda a, b: float(a <= b),
    "eq": lambda a, b: float(a == b), "ne": lambda a, b: float(a != b), "logical_and": lambda a, b: float(bool(a) and bool(b)),
    "logical_or": lambda a, b: float(bool(a) or bool(b)),
}  # fmt: skip


def _apply_operator(name: str, given: dict[str, Any]) -> float:
    x: Any = given.get("self", given.get("input"))
    other: Any = given.get("other", given.get("exponent"))
    if name in ("add", "sub", "rsub"):
        step = other * (given.get("alpha") if given.get("alpha") is not None else 1)
        return float(
            x + step if name == "add" else x - step if name == "sub" else other - x * (given.get("alpha") or 1)
        )
    if name == "div" and given.get("rounding_mode"):
        quotient = _divide(x, other)
        return float(math.floor(quotient) if given["rounding_mode"] == "floor" else math.trunc(quotient))
    if name in _TWO:
        return float(_TWO[name](x, other))
    if name in ("clamp", "hardtanh", "clamp_min", "clamp_max"):
        return float(_cut(x, given.get("min", given.get("min_val")), given.get("max", given.get("max_val"))))
    if name == "leaky_relu":
        slope = given.get("negative_slope")
        return float(x if x > 0 else x * (0.01 if slope is None else slope))
    if name == "elu":
        alpha, scale = (1.0 if given.get(key) is None else given[key] for key in ("alpha", "scale"))
        inner = 1.0 if given.get("input_scale") is None else given["input_scale"]
        return float(x * scale if x > 0 else alpha * math.expm1(x * inner) * scale)
    if name == "gelu":
        if given.get("approximate") == "tanh":
            return float(0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
        return float(0.5 * x * math.erfc(-x * math.sqrt(0.5)))
    if name == "softplus":
        beta, threshold = given.get("beta"), given.get("threshold")
        return _softplus(x, 1.0 if beta is None else beta, 20.0 if threshold is None else threshold)
    if name == "where":
        return float(x if given["condition"] else other)
    if name in ("full", "full_like", "scalar_tensor"):
        filled: Any = given.get("fill_value", given.get("s"))
        return float(filled)
    if name in _ONE:
        return float(_ONE[name](x))
    raise Unknown(name)


def _value(text: str, known: dict[str, float]) -> Any:
    if text in known:
        return known[text]
    if text in ("None", "True", "False"):
        return {"None": None, "True": 1.0, "False": 0.0}[text]
    if text[:1] == "'":
        return text.strip("'")
    try:
        return float(text)
    except ValueError:
        raise Unknown(text) from None


def evaluate(text: str, x: float, rounding: Callable[[float], float]) -> float:
    """Return the function's value at one point; `rounding` is applied to the result of each operator."""
    known = {"x": x}
    result = x
    for line in text.splitlines():
        name, _, call = line.partition("=")
        operator, _, rest = call.partition("(")
        pairs = (part.partition("=") for part in rest.removesuffix(")").split(",") if part)
        given = {key: _value(value, known) for key, _, value in pairs}
        if any(isinstance(one, float) and math.isnan(one) for one in given.values()):
            result = math.nan
        else:
            try:
                result = rounding(_apply_operator(operator.split(".")[1] if "." in operator else operator, given))
            except OverflowError:
                result = math.inf
        known[name] = result
    return result


def wrong_entries(text: str, given: tuple[float, int], made: tuple[float, int], entries: bytes) -> dict[int, int]:
    """Return the wrong entries of a table: stored value (from -128) → distance from the allowed range.

    Raises `Unknown` when the text names an operator that is not known here.
    """
    wrong: dict[int, int] = {}
    for at, entry in enumerate(entries):
        x = f32(f32(at - 128 - given[1]) * given[0])
        ends = [evaluate(text, x, rounding) for rounding in (float, f32)]
        if any(math.isnan(one) for one in ends):
            continue  # the function has no value here, so any entry is allowed
        low, top = (clamp_steps(f(ends), made, sign) for f, sign in ((min, -1), (max, 1)))
        stored = entry - 256 if entry > 127 else entry
        if not low <= stored <= top:
            wrong[at - 128] = max(low - stored, stored - top)
    return wrong


def clamp_steps(value: float, made: tuple[float, int], sign: int) -> int:
    """Return a real value in steps of the output, widened by the tolerance in direction `sign` and cut to INT8."""
    if math.isinf(value):
        return 127 if value > 0 else -128
    steps = value / made[0] + sign * _SLACK
    if abs(steps) > 1e6:
        return 127 if steps > 0 else -128
    return clamp(math.floor(steps + 0.5) + made[1], -128, 127)


def function_of(attributes: bytes) -> str:
    """Return the text under "function" in a FlexBuffers map; empty when there is none."""
    if len(attributes) < 3:
        return ""
    width, packed = attributes[-1], attributes[-2]
    if packed >> 2 != 9 or width not in (1, 2, 4, 8):
        return ""
    place = len(attributes) - 2 - width
    start = place - _number(attributes, place, width)
    size = 1 << (packed & 3)
    count = _number(attributes, start - size, size)
    keys = start - 3 * size - _number(attributes, start - 3 * size, size)
    key_size = _number(attributes, start - 2 * size, size)
    for at in range(count):
        key = keys + at * key_size
        name = key - _number(attributes, key, key_size)
        if attributes[name : attributes.find(b"\0", name)] != b"function":
            continue
        kind = attributes[start + count * size + at]
        where = start + at * size
        text = where - _number(attributes, where, size)
        if kind >> 2 == 5:
            length = _number(attributes, text - (1 << (kind & 3)), 1 << (kind & 3))
            return attributes[text : text + length].decode(errors="replace")
    return ""


def _number(data: bytes, at: int, size: int) -> int:
    if at < 0 or at + size > len(data):
        raise Unknown("attributes that leave their buffer")
    return int.from_bytes(data[at : at + size], "little")
