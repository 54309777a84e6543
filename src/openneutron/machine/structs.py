"""Structs that the native library shares with Python; C headers, ctypes and the format page are made from these tables.

Example:
    >>> [field.name for field in EVENT.fields][-2:]
    ['macs', 'bytes']
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from openneutron.machine.targets import Target

_CTYPES: dict[str, Any] = {
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "i32": ctypes.c_int32, "u64": ctypes.c_uint64,
    "text": ctypes.c_char_p,
}  # fmt: skip
_C = {
    "u8": "uint8_t ",
    "u16": "uint16_t ",
    "u32": "uint32_t ",
    "i32": "int32_t ",
    "u64": "uint64_t ",
    "text": "const char *",
}


class Field(NamedTuple):
    """One member; `kind` is a number's type or `text`."""

    name: str
    kind: str
    meaning: str


class Struct(NamedTuple):
    """A struct by its name in C."""

    name: str
    meaning: str
    fields: tuple[Field, ...]


def _struct(name: str, meaning: str, *rows: tuple[str, str, str]) -> Struct:
    return Struct(name, meaning, tuple(Field(*row) for row in rows))


EVENT = _struct(
    "NeutronEvent",
    "One executed kernel call or copy on the simulator's timeline, in cycles from the start of the run.",
    ("kernel", "u16", "kernel id; 0 for a copy"),
    ("opcode", "u8", "CALL or DMA"),
    ("reserved", "u8", "0"),
    ("tag", "u32", "L1 node of a call, channel of a copy"),
    ("firstRow", "i32", "first output row of the call, clipped to the image"),
    ("rows", "u32", "output rows of the call"),
    ("start", "u64", "cycle in which it begins"),
    ("end", "u64", "cycle in which it is done"),
    ("compute", "u64", "array busy, in 1/1024 cycle"),
    ("memory", "u64", "stalls for data beyond that"),
    ("overhead", "u64", "set-up"),
    ("macs", "u64", "multiplications"),
    ("bytes", "u64", "of the operands or of the copy: constants whole, activations in proportion to the rows"),
)

COST = _struct(
    "nm_cost",
    "Parts of one call in 1/1024 cycle.",
    ("compute", "u64", "array busy"),
    ("memory", "u64", "stalls that weight or data loading adds beyond it"),
    ("overhead", "u64", "set-up"),
)

CONSTANTS = _struct(
    "nm_constants",
    "Constants of the cycle model, in 1/1024 cycle; the files of the targets have their sources.",
    ("mac", "u32", "one step of the array"),
    ("wide", "u32", "steps of the array for one of 16-bit activations"),
    ("lane", "u32", "one step of a depthwise lane"),
    ("row", "u32", "each output row"),
    ("weight_byte", "u32", "each weight byte loaded"),
    ("decode_byte", "u32", "each weight byte decoded"),
    ("element", "u32", "each byte moved by element-wise and copy kernels"),
    ("call", "u32", "each call"),
    ("tile_pixels", "u32", "pixels of a tile"),
    ("dma_byte", "u32", "each byte copied"),
    ("dma_start", "u32", "each copy"),
    ("dma_overlaps", "u32", "1: copies run beside the array"),
    ("output", "u32", "each pixel of M outputs, beside its products; 0 where they hide it"),
)

# The target's own fields; its constants follow as a nested struct, which ctypes sees flattened.
TARGET = _struct(
    "nm_target",
    "What driver and cycle model know of a target.",
    ("name", "text", "as microcode names it"),
    ("hw_version", "u32", "hardware version in the identity block"),
    ("subsystem", "u32", "1: Neutron-S, with TCM, data mover and a list of the kernels called"),
    ("tcm_bytes", "u32", "tightly coupled memory"),
    ("memory_bytes", "u32", "SRAM, or DDR where models live there"),
    ("cores", "u32", "arrays"),
    ("units", "u32", "M of the packing"),
    ("length", "u32", "N of the packing"),
    ("clock_hz", "u32", "of the array"),
)


def target_values(target: Target) -> list[Any]:
    """The members of `nm_target` and of its constants, in order."""
    own = {"memory_bytes": "sram_bytes"}  # members that have another name in C
    values: list[Any] = [target.name.encode()]
    values += [int(getattr(target, own.get(field.name, field.name))) for field in TARGET.fields[1:]]
    return values + [int(getattr(target.cost, field.name)) for field in CONSTANTS.fields]


def ctypes_fields(*structs: Struct) -> tuple[tuple[str, Any], ...]:
    """`_fields_` of a ctypes structure that holds the structs one after the other."""
    return tuple((field.name, _CTYPES[field.kind]) for struct in structs for field in struct.fields)


def c_struct(struct: Struct, *nested: str) -> list[str]:
    """Lines of the C definition; `nested` are further member declarations behind the fields."""
    lines = [f"/* {struct.meaning} */", "typedef struct {"]
    lines += [f"    {_C[field.kind]}{field.name}; /* {field.meaning} */" for field in struct.fields]
    lines += [*(f"    {member}" for member in nested), f"}} {struct.name};"]
    if not any(field.kind == "text" for field in struct.fields):
        size = ctypes.sizeof(type(struct.name, (ctypes.Structure,), {"_fields_": ctypes_fields(struct)}))
        lines.append(f'_Static_assert(sizeof({struct.name}) == {size}, "as Python has it");')
    return [*lines, ""]
