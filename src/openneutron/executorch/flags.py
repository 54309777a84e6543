"""Option strings, as `openneutron compile` takes them, for people who hand them over as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from openneutron.errors import OptionError
from openneutron.options import OPTIMIZE, Options


def _level(text: str) -> str:
    if text not in OPTIMIZE:
        raise ValueError(f"one of {', '.join(OPTIMIZE)}")
    return text


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise ValueError("names separated by commas")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ValueError("a whole number above 0")
    return int(text)


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20}
    return _positive(text[:-1]) * units[text[-1]] if text[-1:] in units else _positive(text)


# Flag → (field of Options, reader of its value, or None for a switch).
FLAGS: dict[str, tuple[str, Callable[[str], Any] | None]] = {
    "--optimize": ("optimize", _level),
    "--pass-off": ("passes_off", _names),
    "--fit": ("fit_bytes", _size),
    "--fetch-constants-to-sram": ("fetch_constants_to_sram", None),
    "--use-profiling": ("use_profiling", None),
    "--dump-kernel-selection": ("dump_kernel_selection_code", None),
}


def apply_flags(options: Options, flags: Sequence[str], *, where: str) -> Options:
    """`options` with `flags` applied; both `--name=value` and `--name value` are understood.

    Example:
        >>> apply_flags(Options(), ["--optimize=max"], where="command line").optimize
        'max'
    """
    words = [word for flag in flags for word in flag.split()]
    changes: dict[str, Any] = {}
    position = 0
    while position < len(words):
        name, equals, value = words[position].partition("=")
        position += 1
        if name not in FLAGS:
            raise OptionError(f"unknown option {name!r}", where=where, hint=f"known: {', '.join(FLAGS)}")
        field, read = FLAGS[name]
        if read is None:
            if equals:
                raise OptionError(f"{name} takes no value, {value!r} was given", where=where)
            changes[field] = True
            continue
        if not equals:
            if position == len(words):
                raise OptionError(f"{name} has no value", where=where)
            value = words[position]
            position += 1
        try:
            found = read(value)
            changes[field] = changes.get(field, ()) + found if isinstance(found, tuple) else found
        except ValueError as error:
            raise OptionError(f"{name} is {value!r}", where=where, hint=str(error)) from error
    return dataclasses.replace(options, **changes)
