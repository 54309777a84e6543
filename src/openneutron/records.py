"""Records: the standard library's dataclasses, made in a fraction of the time.

`dataclasses` writes and compiles the source of up to six methods for each class, and with a hundred classes that is a third
of the time that the command takes to start. Only what must be written for each class is: `__init__`, and the guards of what is
`frozen`; the others are here once for all classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from collections.abc import Callable
    from functools import cache
    from operator import attrgetter

    def _repr(self: Any) -> str:
        shown = (f for f in dataclasses.fields(self) if f.repr)
        return f"{type(self).__qualname__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"

    @cache
    def _values(cls: type) -> Callable[[Any], Any]:
        """What is compared, as a function of a record: a tuple, or the value itself where only one field counts."""
        names = [f.name for f in dataclasses.fields(cls) if f.compare]
        return attrgetter(*names) if names else lambda record: ()

    def _equal(self: Any, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _values(self.__class__)
        return values(self) == values(other)

    def _hash(self: Any) -> int:
        return hash(_values(self.__class__)(self))

    def dataclass(cls: type | None = None, *, frozen: bool = False) -> type | Callable[[type], type]:
        """As `dataclasses.dataclass`; compares, prints and hashes in the same way.

        Example:
            >>> @dataclass(frozen=True)
            ... class Point:
            ...     x: int
            ...     y: int
        """

        def made(cls: type) -> type:
            own = vars(cls)
            if "__repr__" not in own:
                cls.__repr__ = _repr
            if "__eq__" not in own:
                cls.__eq__ = _equal
                cls.__hash__ = own.get("__hash__") or (_hash if frozen else None)
            return dataclasses.dataclass(repr=False, eq=False, frozen=frozen)(cls)

        return made if cls is None else made(cls)
