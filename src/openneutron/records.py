"""Records: the standard library's dataclasses without their module, for a command that starts often.

`dataclasses` imports `inspect`, and writes and compiles the source of up to six methods for each class while the class is
defined; with a hundred and fifty classes that is a third of the time that the command takes to start. Here no source is
written: the methods are the same for all classes and look at a class's fields when it is first used. The standard functions
and `match` take records too; the standard module is imported when they first ask.

A field is a plain one with a default, one made by a function, or one that is only given by name; class variables and
parameters that are no fields stay with the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    from _thread import RLock
    from collections.abc import Callable
    from functools import cache, cached_property
    from itertools import repeat
    from operator import attrgetter

    # What the standard functions and `match` read of a class, and by which they know it.
    _ASKED = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
    _NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")
    _MISSING = object()
    _set = object.__setattr__
    # Two threads may be the first to ask at once, and what one class has it takes from its bases.
    _finishing = RLock()

    class field:
        """A field that has more to it than a default value; as `dataclasses.field`."""

        def __init__(
            self,
            *,
            default: Any = _MISSING,
            default_factory: Callable[[], Any] | None = None,
            repr: bool = True,
            compare: bool = True,
            kw_only: bool = False,
            metadata: dict[str, Any] | None = None,
        ) -> None:
            self.name = ""
            self.default, self.default_factory = default, default_factory
            self.repr, self.compare, self.kw_only = repr, compare, kw_only
            self.metadata = metadata or {}

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, record: Any, owner: type) -> Any:
            """The default, as an attribute of the class."""
            if self.default is _MISSING:
                raise AttributeError(f"{owner.__qualname__} has no attribute {self.name!r}")
            return self.default

        def standard(self) -> Any:
            """The same field for the standard library."""
            import dataclasses

            missing = dataclasses.MISSING
            return dataclasses.field(
                default=missing if self.default is _MISSING else self.default,
                default_factory=self.default_factory or missing,
                repr=self.repr,
                compare=self.compare,
                kw_only=self.kw_only,
                metadata=self.metadata,
            )

    class _Layout:
        """The fields of a class, as its methods read them."""

        def __init__(self, cls: type) -> None:
            found: dict[str, Any] = {}
            for base in reversed(cls.__mro__[1:]):
                found |= _layout(base).defaults if _ASKED[0] in vars(base) else {}
            own = vars(cls)
            asked = own.get(_ASKED[0])
            if asked is not None and asked.__class__ is not _Ask:
                raise TypeError(f"{cls.__qualname__} is no record; use the standard dataclass for what is made of it")
            for name, kind in own.get("__annotations__", {}).items() if asked is not None else ():
                if not isinstance(kind, str) or any(word in kind for word in _NO_FIELDS):
                    raise TypeError(f"{cls.__qualname__}.{name} is no plain field; use the standard dataclass")
                found[name] = own.get(name, _MISSING)
            self.defaults = found  # by name: a value, a `field` that says more, or none
            by_name = [name for name, one in found.items() if one.__class__ is field and one.kw_only]
            self.positional = tuple(name for name in found if name not in by_name)
            self.order = (*self.positional, *by_name)

        @cached_property
        def fields(self) -> tuple[field, ...]:
            made = []
            for name, one in self.defaults.items():
                made.append(one if one.__class__ is field else field(default=one))
                made[-1].name = name
            return tuple(made)

        @cached_property
        def values(self) -> Callable[[Any], Any]:
            """What is compared, as a function of a record: a tuple, or the value itself where only one field counts."""
            names = [one.name for one in self.fields if one.compare]
            return attrgetter(*names) if names else lambda record: ()

        def fill(self, record: Any, given: dict[str, Any], at: int, put: Callable[[Any, str, Any], None]) -> None:
            """Set the fields from the given position on, by name or to their defaults."""
            defaults = self.defaults
            for name in self.order[at:]:
                value = given.pop(name) if name in given else defaults[name]
                if value.__class__ is field:
                    value = value.default if value.default_factory is None else value.default_factory()
                if value is _MISSING:
                    raise TypeError(f"{record.__class__.__qualname__}() misses {name!r}")
                put(record, name, value)
            for name in given:
                fault = " twice" if name in defaults else ", which is none of its fields"
                raise TypeError(f"{record.__class__.__qualname__}() was given {name!r}{fault}")

    _layout = cache(_Layout)

    class _Ask:
        """Stands for an attribute that the standard library would have set, and has it set when somebody asks."""

        def __init__(self, cls: type, name: str) -> None:
            self.cls, self.name = cls, name

        def __get__(self, record: Any, owner: type) -> Any:
            import dataclasses

            cls = self.cls
            with _finishing:
                if isinstance(vars(cls)[self.name], _Ask):
                    _layout(cls)  # reads defaults that the standard library takes off the class
                    for name in _ASKED:
                        delattr(cls, name)
                    for name, value in list(vars(cls).items()):
                        if value.__class__ is field:
                            setattr(cls, name, value.standard())
                    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
            return getattr(owner, self.name)

    def _initializer(cls: type, put: Callable[[Any, str, Any], None]) -> Callable[..., None]:
        layout, order, then = None, (), None

        def __init__(self: Any, /, *args: Any, **given: Any) -> None:
            nonlocal layout, order, then
            if layout is None:
                order, then = _layout(cls).order, getattr(cls, "__post_init__", None)
                layout = _layout(cls)
            for _ in map(put, repeat(self), order, args):
                pass
            if given or len(args) != len(order):
                if len(args) > len(layout.positional):
                    raise TypeError(
                        f"{cls.__qualname__}() takes {len(layout.positional)} values, {len(args)} were given"
                    )
                layout.fill(self, given, len(args), put)
            if then is not None:
                self.__post_init__()

        return __init__

    def _guard(cls: type) -> None:
        """Let nobody assign to the fields of a frozen record or delete them."""

        def refuse(self: Any, name: str, what: str) -> None:
            if type(self) is cls or name in _layout(cls).defaults:
                from dataclasses import FrozenInstanceError

                raise FrozenInstanceError(f"cannot {what} field {name!r}")

        def __setattr__(self: Any, name: str, value: Any) -> None:
            refuse(self, name, "assign to")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self: Any, name: str) -> None:
            refuse(self, name, "delete")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__

    def _repr(self: Any) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in _layout(type(self)).fields if one.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _equal(self: Any, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _layout(self.__class__).values
        return values(self) == values(other)

    def _hash(self: Any) -> int:
        return hash(_layout(self.__class__).values(self))

    def fields(record: Any) -> tuple[field, ...]:
        """The fields of a record or of its class, in the order of their declaration; as `dataclasses.fields`."""
        return _layout(record if isinstance(record, type) else type(record)).fields

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with other values in some fields; as `dataclasses.replace`."""
        kept = vars(record)
        return record.__class__(**{name: kept[name] for name in _layout(record.__class__).order} | changes)

    def dataclass(
        cls: type | None = None, *, frozen: bool = False, eq: bool = True, repr: bool = True
    ) -> type | Callable[[type], type]:
        """As `dataclasses.dataclass`; compares, prints and hashes in the same way.

        Example:
            >>> @dataclass(frozen=True)
            ... class Point:
            ...     x: int
            ...     y: int
        """

        def made(cls: type) -> type:
            own = vars(cls)
            if repr and "__repr__" not in own:
                cls.__repr__ = _repr
            if eq and "__eq__" not in own:
                cls.__eq__ = _equal
                cls.__hash__ = own.get("__hash__") or (_hash if frozen else None)
            if frozen:
                _guard(cls)
            if "__init__" not in own:
                cls.__init__ = _initializer(cls, _set if frozen else setattr)
            # Without a docstring the standard library would write the signature there, and compute it for that.
            cls.__doc__ = cls.__doc__ or cls.__name__
            for name in _ASKED:
                setattr(cls, name, _Ask(cls, name))
            return cls

        return made if cls is None else made(cls)
