"""Writes `litert/schema_tables.py`: operators, enumerations and options tables of the LiteRT schema as plain data.

The schema's Python file defines seven hundred classes, which take longer to import than a small model takes to compile. The
layout of an options table is found by packing an instance with a recording stand-in for the flatbuffers builder.

    python -m openneutron.litert.write_schema_tables
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openneutron.data_module import data_module
from openneutron.litert.operator_options import schema

TARGET = Path(__file__).with_name("schema_tables.py")
_ENUMERATIONS = (
    "BuiltinOperator",
    "BuiltinOptions",
    "BuiltinOptions2",
    "Padding",
    "ActivationFunctionType",
    "MirrorPadMode",
    "FullyConnectedOptionsWeightsFormat",
)
# (attribute, type of its elements, slot, default); a vector's default is None.
Field = tuple[str, str, int, Any]


class _Notes:
    """Stands in for a flatbuffers builder and records the calls."""

    def __init__(self) -> None:
        self.slots, self.element = 0, ""
        self.scalars: list[tuple[str, int, Any]] = []
        self.offsets: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("Prepend"):
            raise TypeError(f"{name} is not for plain fields")
        kind = name.removeprefix("Prepend")
        if kind == "UOffsetTRelativeSlot":
            return lambda slot, value, default: self.offsets.append(slot)
        if kind.endswith("Slot"):
            return lambda slot, value, default: self.scalars.append((kind.removesuffix("Slot"), slot, default))
        self.element = kind
        return lambda value: None

    def StartObject(self, slots: int) -> None:
        """Begin a table."""
        self.slots = slots

    def StartVector(self, size: int, count: int, alignment: int) -> None:
        """Begin a vector."""

    def EndVector(self) -> int:
        """End the vector."""
        return 4

    def EndObject(self) -> int:
        """End the table."""
        return 8


def table_of(cls: type[Any]) -> tuple[int, tuple[Field, ...]] | None:
    """Return a table's slot count and fields in order; None where a field is neither a number nor a vector of numbers."""
    try:
        whole = _Notes()
        cls().Pack(whole)
        found: list[Field] = []
        scalars = iter(whole.scalars)
        for name, default in vars(cls()).items():
            if default is not None:
                kind, slot, stored = next(scalars)
                if stored != default:
                    return None
                found.append((name, kind, slot, type(default)(stored)))
                continue
            notes, made = _Notes(), cls()
            setattr(made, name, [1])
            made.Pack(notes)
            (slot,) = notes.offsets
            if not notes.element or notes.element == "UOffsetTRelative":
                return None
            found.append((name, notes.element, slot, None))
    except (TypeError, AttributeError):
        return None
    return whole.slots, tuple(found)


def render_schema_tables() -> str:
    """The text of the file."""
    enumerations = {
        enumeration: {
            name: number
            for name, number in vars(getattr(schema(), enumeration)).items()
            if isinstance(number, int) and not name.startswith("_")
        }
        for enumeration in _ENUMERATIONS
    }
    names = {name for union in ("BuiltinOptions", "BuiltinOptions2") for name in enumerations[union]} - {"NONE"}
    tables = {name: table_of(getattr(schema(), f"{name}T")) for name in sorted(names)}
    return data_module(
        "The LiteRT schema as far as operators need it. Written by openneutron.litert.write_schema_tables; do not edit.",
        {
            "ENUMERATIONS": ("dict[str, dict[str, int]]", enumerations),
            "TABLES": (
                "dict[str, tuple[int, tuple[tuple[str, str, int, Any], ...]]]",
                {name: table for name, table in tables.items() if table is not None},
            ),
        },
    )


if __name__ == "__main__":
    TARGET.write_text(render_schema_tables(), encoding="utf-8")
