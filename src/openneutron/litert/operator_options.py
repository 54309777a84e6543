"""Which options table belongs to which builtin operator, and the names behind its small enumerations.

The schema package itself is imported for rare tables only: `schema_tables` has the rest.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from openneutron.errors import FormatError, OptionError
from openneutron.litert.light_options import options_class
from openneutron.litert.schema_tables import ENUMERATIONS

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


@cache
def operator_names() -> dict[int, str]:
    """Builtin operator number → name, "CUSTOM" included."""
    names = {number: name for name, number in ENUMERATIONS["BuiltinOperator"].items()}
    del names[operator_number("PLACEHOLDER_FOR_GREATER_OP_CODES")]
    return names


@cache
def operator_number(code: str) -> int:
    """The schema's number of a builtin operator name."""
    try:
        return ENUMERATIONS["BuiltinOperator"][code]
    except KeyError:
        raise OptionError(f"{code!r} is not a LiteRT operator", hint='use a builtin name such as "CONV_2D"') from None


@cache
def options_unions() -> tuple[dict[int, str], dict[int, str]]:
    """Union type number → name of the options table, for `options` and for `options2`."""

    def tables(enumeration: str) -> dict[int, str]:
        return {number: name for name, number in ENUMERATIONS[enumeration].items() if name != "NONE"}

    return tables("BuiltinOptions"), tables("BuiltinOptions2")


@cache
def _tables_by_operator() -> dict[str, str]:
    tables = {name.removesuffix("Options").lower(): name for union in options_unions() for name in union.values()}
    found = {code: tables.get(code.replace("_", "").lower()) for code in operator_names().values()}
    return {code: name for code, name in found.items() if name is not None} | _SHARED_TABLES


def options_of(code: str) -> type[Any] | None:
    """The schema's options class of a builtin operator, or None for one without options.

    Example:
        >>> options_of("MAX_POOL_2D").__name__
        'Pool2DOptionsT'
    """
    operator_number(code)
    table = _tables_by_operator().get(code)
    return None if table is None else options_class(table)


@cache
def _numbers() -> dict[str, tuple[int, int]]:
    both = enumerate(options_unions(), start=1)
    return {f"{name}T": (field, number) for field, union in both for number, name in union.items()}


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
            members = ENUMERATIONS[_ENUMS[field]]
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
    for name, number in ENUMERATIONS[enumeration].items():
        if number == value:
            return name
    raise FormatError(f"{what} {value} does not exist in LiteRT")
