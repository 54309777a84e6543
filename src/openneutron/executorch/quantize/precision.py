"""Precision: which activations have 8 and which 16 bits, by pattern; the last match wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TypeAlias

from openneutron.errors import OptionError


class Precision(StrEnum):
    """Bits of activations; weights are INT8 either way."""

    INT8 = "int8"
    INT16 = "int16"


int8, int16 = Precision.INT8, Precision.INT16

# "int16" for everything, or patterns of names: {"head": "int16", "Softmax": "int8"}, or ["head=int16", "Softmax=int8"].
PrecisionLike: TypeAlias = "str | Mapping[str, str] | Iterable[str]"


def precision_of(given: object) -> Precision:
    """A precision from its name, or from torch's type of that name.

    Example:
        >>> precision_of("int16")
        <Precision.INT16: 'int16'>
    """
    name = str(given).removeprefix("torch.").lower()
    if name not in tuple(Precision):
        raise OptionError(f"activations of {given}", hint=f"one of {', '.join(Precision)}")
    return Precision(name)


def _pair(text: str) -> tuple[str, str]:
    """Split "head=int16" into pattern and precision; "int16" alone applies to everything."""
    pattern, _, precision = text.rpartition("=")
    return pattern.strip(), precision.strip()


@dataclass
class Precisions:
    """A default precision, and exceptions in the order in which they were made.

    Example:
        >>> chosen = Precisions.of({"head": "int16"})
        >>> chosen.of_names({"head.fc"}), chosen.of_names({"body.0"})
        (<Precision.INT16: 'int16'>, None)
    """

    default: Precision = Precision.INT8
    rules: list[tuple[str, Precision]] = field(default_factory=list)

    @classmethod
    def of(cls, given: PrecisionLike, default: str = Precision.INT8) -> Precisions:
        """Make precisions from "int16" or from patterns; "*" matches everything."""
        made = cls(precision_of(default))
        if isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            pairs = [_pair(one) for one in ([given] if isinstance(given, str) else given) if one]
        for pattern, precision in pairs:
            made.choose(pattern, precision)
        return made

    def choose(self, pattern: str, precision: object) -> None:
        """Choose a precision for matching names and for everything inside a module of a matching path."""
        if pattern in ("", "*"):
            self.default = precision_of(precision)
        else:
            self.rules.append((pattern, precision_of(precision)))

    def of_names(self, names: Iterable[str]) -> Precision | None:
        """Return the precision chosen for something with these names; None if there is none."""
        known = [name for name in names if name]
        for pattern, precision in reversed(self.rules):
            if any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for name in known):
                return precision
        return None
