"""Parse options given as text, as `openneutron compile` takes them."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from openneutron.errors import OptionError
from openneutron.options import SCHEMA, Option, Options, read_text

# Options that concern the conversion of one partition; the other ones choose partitions, or files.
FLAGS = {
    one.flag: one
    for one in SCHEMA.values()
    if one.flag and one.key and one.name not in ("target", "converter", "operators_not_to_delegate")
}


def _read(option: Option, text: str) -> Any:
    try:
        return read_text(option, text)
    except OptionError as error:
        raise OptionError(f"{option.flag} is {text!r}", hint=error.hint) from error


class _Parser(argparse.ArgumentParser):
    """Parses the options of the schema; every mistake is an `OptionError`."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
        for flag, option in FLAGS.items():
            if option.kind == "switch":
                self.add_argument(flag, dest=option.name, action="store_true")
            else:
                action = "extend" if option.kind == "names" else "store"
                self.add_argument(flag, dest=option.name, action=action, type=partial(_read, option))

    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def apply_flags(options: Options, flags: Sequence[str], *, where: str) -> Options:
    """Return `options` with `flags` applied; both `--name=value` and `--name value` are understood.

    Example:
        >>> apply_flags(Options(), ["--optimize=max"], where="command line").optimize
        'max'
    """
    try:
        found, unknown = _Parser().parse_known_args([word for flag in flags for word in flag.split()])
    except OptionError as error:
        raise OptionError(error.message, where=where, hint=error.hint) from None
    if unknown:
        raise OptionError(f"unknown option {unknown[0]!r}", where=where, hint=f"known: {', '.join(FLAGS)}")
    changes: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in vars(found).items()
    }
    return dataclasses.replace(options, **changes)
