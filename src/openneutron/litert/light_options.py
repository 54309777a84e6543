"""Options tables as classes of our own: attributes, names and bytes as the schema's object API has them, not imported.

Example:
    >>> made = options_class("Conv2DOptions")()
    >>> made.dilationWFactor
    1
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from openneutron.litert.schema_tables import TABLES

if TYPE_CHECKING:
    from typing import Self

    from openneutron.litert.walker import Table

# The schema's types as numpy knows them; a `struct` for each reads one.
_DTYPES = {
    "Bool": "?", "Int8": "<i1", "Uint8": "<u1", "Int32": "<i4", "Uint32": "<u4", "Int64": "<i8", "Float32": "<f4",
}  # fmt: skip
_STRUCTS = {
    kind: Struct(letter)
    for kind, letter in {
        "Bool": "?", "Int8": "b", "Uint8": "B", "Int32": "<i", "Uint32": "<I", "Int64": "<q", "Float32": "<f",
    }.items()
}  # fmt: skip


class LightOptions:
    """An options table; `SLOTS` and `FIELDS` are those of `schema_tables.TABLES`."""

    SLOTS: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[tuple[str, str, int, Any], ...]] = ()

    def __init__(self, **given: Any) -> None:
        for name, _, _, default in self.FIELDS:
            setattr(self, name, given.pop(name, default))
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(given)}")

    @classmethod
    def read(cls, table: Table) -> Self:
        """The options in a file."""
        made = cls.__new__(cls)
        for name, kind, slot, default in cls.FIELDS:
            if default is None:
                setattr(made, name, table.vector(slot, _DTYPES[kind]))
            else:
                setattr(made, name, table.number(slot, _STRUCTS[kind], default))
        return made

    def Pack(self, builder: Any) -> int:
        """Write the table with a flatbuffers builder, vectors first."""
        vectors = {}
        for name, kind, _, default in self.FIELDS:
            values = getattr(self, name)
            if default is None and values is not None:
                vectors[name] = _vector(builder, values, kind)
        builder.StartObject(self.SLOTS)
        for name, kind, slot, default in self.FIELDS:
            if name in vectors:
                builder.PrependUOffsetTRelativeSlot(slot, vectors[name], 0)
            elif default is not None:
                getattr(builder, f"Prepend{kind}Slot")(slot, getattr(self, name), default)
        return int(builder.EndObject())


def _vector(builder: Any, values: Any, kind: str) -> int:
    if type(values) is np.ndarray:
        return int(builder.CreateNumpyVector(values))
    size = np.dtype(_DTYPES[kind]).itemsize
    builder.StartVector(size, len(values), size)
    prepend = getattr(builder, f"Prepend{kind}")
    for value in reversed(values):
        prepend(value)
    return int(builder.EndVector())


@cache
def options_class(table: str) -> type[Any]:
    """The class of an options table: light, or, for the few with texts and tables in them, the schema's own."""
    if table not in TABLES:
        from openneutron.litert.operator_options import schema

        found: type[Any] = getattr(schema(), f"{table}T")
        return found
    slots, fields = TABLES[table]
    content = {"__module__": __name__, "__doc__": f"The schema's {table}.", "SLOTS": slots, "FIELDS": fields}
    return type(f"{table}T", (LightOptions,), content)


def __getattr__(name: str) -> Any:
    """The classes by name, for pickles."""
    if name.removesuffix("T") not in TABLES or not name.endswith("T"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return options_class(name.removesuffix("T"))
