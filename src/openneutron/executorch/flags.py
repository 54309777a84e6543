"""Option strings, as `openneutron compile` takes them, for people who hand them over as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from openneutron.errors import OptionError
from openneutron.options import SCHEMA, Options, read_text

# What a conversion of one partition obeys; the rest of the command line decides about partitions, or files.
FLAGS = {
    one.flag: one
    for one in SCHEMA.values()
    if one.flag and one.key and one.name not in ("target", "converter", "operators_not_to_delegate")
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
        option = FLAGS[name]
        if option.kind == "switch":
            if equals:
                raise OptionError(f"{name} takes no value, {value!r} was given", where=where)
            changes[option.name] = True
            continue
        if not equals:
            if position == len(words):
                raise OptionError(f"{name} has no value", where=where)
            value = words[position]
            position += 1
        try:
            found = read_text(option, value)
        except OptionError as error:
            raise OptionError(f"{name} is {value!r}", where=where, hint=error.hint) from error
        changes[option.name] = changes.get(option.name, ()) + found if isinstance(found, tuple) else found
    return dataclasses.replace(options, **changes)
