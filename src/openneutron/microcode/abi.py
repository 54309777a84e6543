"""The calling convention of kernels: their operands and parameters, registered by each kernel's own file.

A kernel's parameters are a frozen dataclass of integers declared with `param("meaning")`; encoder, decoder,
disassembler, the C struct and the format page read that one declaration.

Example:
    >>> @dataclass(frozen=True)
    ... class LutParams:
    ...     value: int = param("what it means")
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, NamedTuple

from openneutron.errors import FormatError, InternalError

# The formulas of `runtime/firmware/machine/`, in the order of the C enum; each is one small file there.
COSTS = ("conv", "lane", "fc", "element", "softmax", "reduce", "matmul", "recurrent", "update")
# Operands that a kernel reads and updates: state that it keeps between rows and between runs.
STATE_ROLES = ("hidden", "cell", "memory")
# Operands a kernel writes; microcode that points them at inputs or weights is refused.
WRITTEN_ROLES = ("output", "workspace", *STATE_ROLES)
# Operands that are no activations: element-wise cost formulas do not count their bytes as moved.
CONSTANT_ROLES = ("weights", "table", "lut", "rows", "columns", "workspace", *STATE_ROLES)


class KernelAbi(NamedTuple):
    """One kernel of the firmware.

    `operands` are roles in order; a role ending in "?" may be absent (region WEIGHTS, zero channels). The output is
    always the role "output". `cost` names the formula of `runtime/firmware/machine/` that prices a call; formulas find the
    window and the groups in parameters named kernel_h, kernel_w and groups (1 where a kernel has none). A `dense` kernel
    ignores the operands' pitches: it only takes tensors stored without gaps.
    """

    id: int
    name: str
    abi: int
    operands: tuple[str, ...]
    params: type
    cost: str
    meaning: str
    dense: bool = False


def param(meaning: str, size: int = 1, *, least: int = 1, grows: int = 0) -> Any:
    """Declare one integer parameter, or with `size` > 1 a tuple of that many integers.

    In programs with repeated steps (see `openneutron.microcode.widths`) at least `least` bytes of the parameter are stored. A
    parameter that `grows` with the size of a tensor takes at least that many bytes, or none where it is 0 or 1.
    """
    return field(metadata={"meaning": meaning, "size": size, "least": least, "grows": grows})


_BY_ID: dict[int, KernelAbi] = {}
_BY_NAME: dict[str, KernelAbi] = {}
_SIZES: dict[type, list[tuple[str, int]]] = {}  # of parameters: names and words, by class


def register(abi: KernelAbi) -> KernelAbi:
    """Add a kernel; called once by each file under `compiler/kernels/`."""
    if abi.cost not in COSTS:
        raise InternalError(f"kernel {abi.name} names cost formula {abi.cost!r}; there are {', '.join(COSTS)}")
    other = _BY_ID.get(abi.id)
    if other is not None and other.name != abi.name:
        raise InternalError(f"kernels {other.name} and {abi.name} both claim id {abi.id}")
    _BY_ID[abi.id] = _BY_NAME[abi.name] = abi
    return abi


def by_id(kernel_id: int) -> KernelAbi:
    """The kernel with that id; a `FormatError` when there is none."""
    if kernel_id not in _BY_ID:
        raise FormatError(f"kernel id {kernel_id} is unknown", hint="the file was made by a newer converter")
    return _BY_ID[kernel_id]


def by_name(name: str) -> KernelAbi | None:
    """The kernel of that name; None when no file that was imported registered it."""
    return _BY_NAME.get(name)


def all_kernels() -> list[KernelAbi]:
    """Every registered kernel in order of id."""
    return [_BY_ID[key] for key in sorted(_BY_ID)]


def param_words(params: Any) -> list[int]:
    """The parameters as 32-bit words, in the order of declaration."""
    words: list[int] = []
    kind = type(params)
    if kind not in _SIZES:
        _SIZES[kind] = [(item.name, item.metadata["size"]) for item in fields(params)]
    for name, size in _SIZES[kind]:
        value = getattr(params, name)
        if size == 1:
            words.append(int(value))
            continue
        if len(value) != size:
            raise InternalError(f"parameter {name} has {len(value)} of {size} words")
        words += map(int, value)
    return words


def least_bytes(params: Any) -> list[int]:
    """How many bytes of each word of the parameters are stored at least where steps are repeated."""
    declared = [item.metadata for item in fields(params) for _ in range(item.metadata["size"])]
    grown = [
        rule["grows"] if word not in (0, 1) else 0 for rule, word in zip(declared, param_words(params), strict=True)
    ]
    return [size if rule["grows"] else rule["least"] for rule, size in zip(declared, grown, strict=True)]


def params_from_words(abi: KernelAbi, words: list[int]) -> Any:
    """The inverse of `param_words`."""
    values: dict[str, Any] = {}
    at = 0
    for item in fields(abi.params):
        size = item.metadata["size"]
        values[item.name] = words[at] if size == 1 else tuple(words[at : at + size])
        at += size
    if at != len(words):
        raise FormatError(f"kernel {abi.name} takes {at} parameter words, the call has {len(words)}")
    return abi.params(**values)
