"""Writes `litert/layout.py`: operators, enumerations and options tables of the LiteRT schema as plain data.

The schema's Python file defines seven hundred classes, which takes longer to import than a small model takes to compile. What
an options table looks like is asked of its class: it is packed by a builder that only takes notes.

    python -m openneutron.litert.lay_out
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from openneutron.data_module import data_module
from openneutron.litert.operator_options import schema

TARGET = Path(__file__).with_name("layout.py")
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
    """Stands in for a flatbuffers builder and keeps what it is told."""

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
        """A table begins."""
        self.slots = slots

    def StartVector(self, size: int, count: int, alignment: int) -> None:
        """A vector begins."""

    def EndVector(self) -> int:
        """It ends."""
        return 4

    def EndObject(self) -> int:
        """The table ends."""
        return 8


def table_of(cls: type[Any]) -> tuple[int, tuple[Field, ...]] | None:
    """Slots of a table and its fields in their order; None where some are neither numbers nor vectors of numbers."""
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


def layout() -> str:
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
        "The LiteRT schema as far as operators need it. Written by openneutron.litert.lay_out; do not edit.",
        {
            "ENUMERATIONS": ("dict[str, dict[str, int]]", enumerations),
            "TABLES": (
                "dict[str, tuple[int, tuple[tuple[str, str, int, Any], ...]]]",
                {name: table for name, table in tables.items() if table is not None},
            ),
        },
    )


if __name__ == "__main__":
    TARGET.write_text(layout(), encoding="utf-8")
