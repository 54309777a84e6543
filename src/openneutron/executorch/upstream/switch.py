"""Optional replacements of upstream's functions: one switch, one guard and one note for all of them.

A replacement only saves time. Three things turn it off, and the compile then takes the plain way to the same bytes:
`OPENNEUTRON_PLAIN`, a version of the package that nobody tested, or a function that no longer looks as expected. The last two
are noted in the report.

Example:
    >>> @replaces("torch", Expected("torch.fx.graph_module", "GraphModule.recompile", ("self",)))
    ... def recompile_once() -> Iterator[None]: ...
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import reduce, wraps
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

TESTED: Final = {"torch": "2.13", "torchao": "0.18", "executorch": "1.5", "ruamel.yaml": "0"}  # the versions known


@dataclass(frozen=True)
class Expected:
    """A name that a replacement relies on; `parameters` are those of a function, None for anything else."""

    module: str
    name: str
    parameters: tuple[str, ...] | None = None

    def problem(self) -> str:
        """Why it is not as expected, "" where it is."""
        try:
            found: Any = reduce(getattr, self.name.split("."), import_module(self.module))
        except (ImportError, AttributeError):
            return f"{self.module} has no {self.name}"
        if self.parameters is not None:
            try:
                given = tuple(inspect.signature(found).parameters)
            except (TypeError, ValueError):
                return f"{self.module}.{self.name} is no function"
            if given != self.parameters:
                return f"{self.module}.{self.name} takes ({', '.join(given)})"
        return ""


@dataclass(frozen=True)
class Present:
    """A module that a replacement relies on and that must not be imported to look."""

    module: str

    def problem(self) -> str:
        """That it is missing, "" where it is not."""
        return "" if find_spec(self.module) is not None else f"there is no {self.module}"


@dataclass(frozen=True)
class Replacement:
    """One optional replacement: the package whose functions it replaces, and what it expects to find there."""

    name: str
    package: str
    expected: tuple[Expected | Present, ...]
    _found: list[str] = field(default_factory=list)  # what the guard found, once it was asked

    def is_used(self) -> bool:
        """Whether neither the switch nor the guard turns it off."""
        return not self.reason()

    def reason(self) -> str:
        """What turns it off, "" where nothing does."""
        return "OPENNEUTRON_PLAIN" if is_plain(self.name) else self.problem()

    def problem(self) -> str:
        """Why the installed package takes the plain way, "" where it does not. Looked up once per process."""
        if not self._found:
            missing = (one.problem() for one in self.expected)
            self._found.append(unknown_version(self.package) or next(filter(None, missing), ""))
        return self._found[0]

    def noted_problem(self) -> str:
        """As `problem`, "" while nobody asked."""
        return self._found[0] if self._found else ""


REPLACEMENTS: Final[dict[str, Replacement]] = {}


def replaces(
    package: str, *expected: Expected | Present
) -> Callable[[Callable[..., Iterator[None]]], Callable[..., AbstractContextManager[None]]]:
    """Make a generator function an optional replacement: a context manager that does nothing where it is turned off."""

    def decorate(function: Callable[..., Iterator[None]]) -> Callable[..., AbstractContextManager[None]]:
        replacement = register(function.__name__, package, *expected)
        apply = contextmanager(function)

        @wraps(function)
        def use(*args: Any) -> AbstractContextManager[None]:
            return apply(*args) if replacement.is_used() else nullcontext()

        return use

    return decorate


def register(name: str, package: str, *expected: Expected | Present) -> Replacement:
    """Add a replacement to the list that benchmarks and notes go through."""
    REPLACEMENTS[name] = Replacement(name, package, expected)
    return REPLACEMENTS[name]


def is_plain(name: str) -> bool:
    """Whether OPENNEUTRON_PLAIN turns a replacement off: 1 for all of them, or names separated by commas."""
    asked = os.environ.get("OPENNEUTRON_PLAIN", "")
    return asked not in ("", "0") and (asked == "1" or name in asked.split(","))


def accepts_untested() -> bool:
    """Whether OPENNEUTRON_UNTESTED allows versions that nobody tested."""
    return os.environ.get("OPENNEUTRON_UNTESTED", "") not in ("", "0")


def unknown_version(package: str) -> str:
    """That the installed version of a package is not one of `TESTED`; "" where it is, or where the user does not mind."""
    installed = version(package)
    if accepts_untested() or f"{installed}.".startswith(f"{TESTED[package]}."):
        return ""
    return f"{package} {installed} is not known, {TESTED[package]} is"


def notes() -> tuple[str, ...]:
    """One sentence for each reason why replacements were left out in this process."""
    reasons: dict[str, list[str]] = {}
    for one in REPLACEMENTS.values():
        if one.noted_problem():
            reasons.setdefault(one.noted_problem(), []).append(one.name)
    return tuple(f"compiling takes longer without {', '.join(names)}: {why}" for why, names in reasons.items())
