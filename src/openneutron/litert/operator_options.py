"""Which options table belongs to which builtin operator, and the names behind its small enumerations.

The schema package is imported on first use: it costs 0.15 s that programs without LiteRT work need not pay.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from openneutron.errors import FormatError, OptionError

# Operators whose options table is not simply named after them.
_SHARED_TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "MULTINOMIAL": "RandomOptions",
}

# Enumerations that may be given by name: option field → the schema's enumeration.
_ENUMS = {
    "padding": "Padding",
    "fusedActivationFunction": "ActivationFunctionType",
    "mode": "MirrorPadMode",
    "weightsFormat": "FullyConnectedOptionsWeightsFormat",
}


@cache
def schema() -> ModuleType:
    """The LiteRT schema's object API."""
    from ai_edge_litert import schema_py_generated

    return schema_py_generated  # type: ignore[no-any-return,unused-ignore]


def _members(enumeration: str) -> dict[str, int]:
    found = vars(getattr(schema(), enumeration))
    return {name: value for name, value in found.items() if isinstance(value, int) and not name.startswith("_")}


@cache
def operator_names() -> dict[int, str]:
    """Builtin operator number → name, "CUSTOM" included."""
    names = {number: name for name, number in _members("BuiltinOperator").items()}
    del names[operator_number("PLACEHOLDER_FOR_GREATER_OP_CODES")]
    return names


@cache
def operator_number(code: str) -> int:
    """The schema's number of a builtin operator name."""
    try:
        return _members("BuiltinOperator")[code]
    except KeyError:
        raise OptionError(f"{code!r} is not a LiteRT operator", hint='use a builtin name such as "CONV_2D"') from None


@cache
def options_unions() -> tuple[dict[int, type[Any]], dict[int, type[Any]]]:
    """Union type number → options class, for `options` and for `options2`."""

    def classes(enumeration: str) -> dict[int, type[Any]]:
        members = _members(enumeration).items()
        return {number: getattr(schema(), f"{name}T") for name, number in members if name != "NONE"}

    return classes("BuiltinOptions"), classes("BuiltinOptions2")


@cache
def _tables_by_operator() -> dict[str, type[Any]]:
    both = options_unions()
    tables = {cls.__name__[: -len("OptionsT")].lower(): cls for union in both for cls in union.values()}
    named = {cls.__name__: cls for union in both for cls in union.values()}
    result = {code: tables.get(code.replace("_", "").lower()) for code in operator_names().values()}
    result.update({code: named[f"{table}T"] for code, table in _SHARED_TABLES.items()})
    return {code: cls for code, cls in result.items() if cls is not None}


def options_of(code: str) -> type[Any] | None:
    """The schema's options class of a builtin operator, or None for one without options.

    Example:
        >>> options_of("MAX_POOL_2D").__name__
        'Pool2DOptionsT'
    """
    operator_number(code)
    return _tables_by_operator().get(code)


@cache
def _numbers() -> dict[str, tuple[int, int]]:
    both = enumerate(options_unions(), start=1)
    return {cls.__name__: (field, number) for field, union in both for number, cls in union.items()}


def options_number(options: Any) -> tuple[int, int]:
    """(field, type number) of an options object: field 1 is `options`, field 2 is `options2`."""
    try:
        return _numbers()[type(options).__name__]
    except KeyError:
        raise OptionError(f"{type(options).__name__} is not an options table of LiteRT") from None


def make_options(code: str, fields: dict[str, Any]) -> Any:
    """An options object of operator `code` with `fields`, in snake_case or the schema's own spelling.

    Enumerations (`padding`, `fused_activation_function`, `mode`) may be given by name.
    """
    cls = options_of(code)
    if cls is None:
        if fields:
            raise OptionError(f"{code} has no options, but {', '.join(sorted(fields))} was given")
        return None
    options = cls()
    known = vars(options)
    for name, value in fields.items():
        head, *rest = name.split("_")
        field = head + "".join(part.capitalize() for part in rest)
        if field not in known:
            raise OptionError(f"{code} has no option {name!r}", hint=f"it has {', '.join(known)}")
        if isinstance(value, str) and field in _ENUMS:
            members = _members(_ENUMS[field])
            if value not in members:
                raise OptionError(f"{name} of {code} is {value!r}", hint=f"one of {', '.join(members)}")
            value = members[value]
        setattr(options, field, value)
    return options


def activation_name(value: int) -> str:
    """Name of a fused activation: NONE, RELU, RELU_N1_TO_1, RELU6, TANH or SIGN_BIT."""
    return _name("ActivationFunctionType", value, "fused activation")


def padding_name(value: int) -> str:
    """Name of a padding: SAME or VALID."""
    return _name("Padding", value, "padding")


def mirror_pad_name(value: int) -> str:
    """Name of a mirror-pad mode: REFLECT or SYMMETRIC."""
    return _name("MirrorPadMode", value, "mirror-pad mode")


@cache
def _name(enumeration: str, value: int, what: str) -> str:
    for name, number in _members(enumeration).items():
        if number == value:
            return name
    raise FormatError(f"{what} {value} does not exist in LiteRT")
