"""Records: the standard library's dataclasses, made when they are first used.

`dataclasses` writes and compiles the source of up to six methods for each class while the class is defined, and with a hundred
and fifty classes that is a third of the time that the command takes to start. Here a class that is not used costs nothing, its
first instances are filled by one method for all classes, and only a class that has many instances gets an `__init__` of its
own. The other methods are here once for all classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from _thread import RLock
    from collections.abc import Callable
    from functools import cache
    from operator import attrgetter

    # What the standard functions and `match` read of a class, and by which they know it.
    _ASKED = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
    # Filling an instance the common way takes 2 us longer, compiling an `__init__` 150 us.
    _MANY = 75
    _MISSING = dataclasses.MISSING
    _set = object.__setattr__
    # Two threads may be the first to ask at once, and what one class has it takes from its bases.
    _finishing = RLock()

    class _Ask:
        """Stands for an attribute of a class that has no fields yet, finds them and answers with the true value."""

        def __init__(self, cls: type, name: str) -> None:
            self.cls, self.name = cls, name

        def __get__(self, record: Any, owner: type) -> Any:
            cls = self.cls
            with _finishing:
                if isinstance(vars(cls)[self.name], _Ask):
                    for name in _ASKED:
                        delattr(cls, name)
                    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
            return getattr(owner, self.name)

    def _filled(cls: type, frozen: bool) -> Callable[..., None]:
        """An `__init__` that sets what it is given and takes defaults from the class, until there are many instances."""
        left, order, defaults, then = _MANY, None, {}, None

        def __init__(self: Any, *args: Any, **given: Any) -> None:
            nonlocal left, order, defaults, then
            left -= 1
            if order is None:
                defaults = _defaults(cls)
                order, then = tuple(defaults or ()), getattr(cls, "__post_init__", None)
            values = dict(zip(order, args, strict=False))
            if left > 0 and len(values) == len(args) and values.keys().isdisjoint(given):
                values.update(given)
                for name in order:
                    value = values.pop(name, _MISSING)
                    if value is _MISSING:
                        value = defaults[name]
                        if value is _MISSING:
                            break
                        if value.__class__ is dataclasses.Field:
                            value = value.default_factory()
                    _set(self, name, value)
                else:
                    if order and not values:
                        if then is not None:
                            self.__post_init__()
                        return
            # A class with many instances, one with unusual fields, or wrong arguments, which its own `__init__` names.
            cls.__init__ = _compiled(cls, frozen)
            cls.__init__(self, *args, **given)

        return __init__

    def _defaults(cls: type) -> dict[str, Any] | None:
        """Field → its default, MISSING, or a `Field` that makes one; None where a field is not an ordinary one."""
        found: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            own = vars(base)
            if "__dataclass_fields__" not in own:
                continue
            if not isinstance(own["__dataclass_fields__"], _Ask):  # asked before, which takes defaults off the class
                fields = own["__dataclass_fields__"].values()
                if any(not f.init or f.kw_only or f._field_type is not dataclasses._FIELD for f in fields):
                    return None
                found.update((f.name, f.default if f.default_factory is _MISSING else f) for f in fields)
                continue
            for name, kind in own.get("__annotations__", {}).items():
                default = own.get(name, _MISSING)
                if default.__class__ is dataclasses.Field:
                    if not default.init or default.kw_only is True:
                        return None
                    default = default.default if default.default_factory is _MISSING else default
                if not isinstance(kind, str) or "ClassVar" in kind or "InitVar" in kind or "KW_ONLY" in kind:
                    return None
                found[name] = default
        return found

    def _compiled(cls: type, frozen: bool) -> Callable[..., None]:
        """`__init__` as the standard library writes it."""
        known: dict[str, Any] = {"_set": _set, "_MISSING": _MISSING}
        head, keywords, body, after = ["self"], [], [], []
        for field in cls.__dataclass_fields__.values():
            if field._field_type is dataclasses._FIELD_CLASSVAR:
                continue
            name = value = field.name
            if field.default_factory is not _MISSING:
                known[f"_of_{name}"] = field.default_factory
                value = f"_of_{name}() if {name} is _MISSING else {name}" if field.init else f"_of_{name}()"
            elif not field.init:
                continue  # the class's own attribute is its default
            if field.init:
                given = name
                if field.default is not _MISSING or field.default_factory is not _MISSING:
                    known[f"_default_{name}"] = field.default
                    given = f"{name}=_default_{name}"
                (keywords if field.kw_only else head).append(given)
            if field._field_type is dataclasses._FIELD_INITVAR:
                after.append(name)
            else:
                body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append(f"self.__post_init__({', '.join(after)})")
        head += ["*", *keywords] if keywords else []
        source = f"def __init__({', '.join(head)}):\n " + "\n ".join(body or ["pass"])
        exec(source, known)  # as the standard library does, from names of our own sources # nosec B102
        made = known["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _guard(cls: type) -> None:
        """Let nobody assign to the fields of a frozen record or delete them."""

        def __setattr__(self: Any, name: str, value: Any) -> None:
            if type(self) is cls or name in cls.__dataclass_fields__:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self: Any, name: str) -> None:
            if type(self) is cls or name in cls.__dataclass_fields__:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__

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
                cls.__init__ = _filled(cls, frozen)
            # Without a docstring the standard library would write the signature there, and compute it for that.
            cls.__doc__ = cls.__doc__ or cls.__name__
            for name in _ASKED:
                setattr(cls, name, _Ask(cls, name))
            return cls

        return made if cls is None else made(cls)
