"""Boards: their cores, memory and names in Zephyr and MCUXpresso SDK, read from `boards.toml`.

Example:
    >>> board = load("frdm_mcxn947/mcxn947/cpu0")
    >>> board.name, board.core, board.ram.bytes
    ('frdmmcxn947', 'cortex-m33', 319488)
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from typing import Any

from openneutron.errors import OptionError

_EMULATORS = "emulators"
_REGIONS = ("flash", "ram", "npu_ram", "npu_model", "npu_pools")


@dataclass(frozen=True)
class Memory:
    """A range of addresses."""

    origin: int
    bytes: int


@dataclass(frozen=True)
class Board:
    """A board as a program on one of its cores sees it; `chip` is the NPU's target, "" where there is none."""

    name: str
    description: str
    core: str
    flash: Memory
    ram: Memory
    chip: str = ""
    zephyr: str = ""
    mcuxpresso: str = ""
    core_id: str = ""
    npu_ram: Memory | None = None
    npu_model: Memory | None = None
    npu_pools: Memory | None = None

    @property
    def platforms(self) -> tuple[str, ...]:
        """What builds projects for it, as --for takes it."""
        known = {"cmake": True, "zephyr": bool(self.zephyr), "mcuxpresso": bool(self.mcuxpresso)}
        return tuple(name for name, there in known.items() if there)

    @property
    def hint(self) -> str:
        """What to do where a platform does not know it."""
        return f"use {' or '.join(f'--for {name}' for name in self.platforms)}"


@dataclass(frozen=True)
class Emulator:
    """What QEMU runs a core's programs on: names for -M and -cpu, and its memory."""

    machine: str
    cpu: str
    flash: Memory
    ram: Memory


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / "boards.toml").read_text("utf-8"))


@cache
def names() -> tuple[str, ...]:
    """Names of the boards, those of QEMU first."""
    return tuple(name for name in _tables() if name != _EMULATORS)


def load(text: str) -> Board:
    """Return the board of that name, part number or other spelling; an `OptionError` lists the known ones."""
    found = [name for name in names() if _is_named(name, text)]
    if len(found) != 1:
        near = get_close_matches(text.lower(), names(), n=1)
        known = f"known boards: {', '.join(names())}"
        message = f"unknown board {text!r}" if text else "no board is named"
        raise OptionError(message, hint=f"did you mean {near[0]!r}? {known}" if near else f"--board NAME; {known}")
    table = dict(_tables()[found[0]])
    table.pop("aliases")
    regions: dict[str, Any] = {name: Memory(*table.pop(name)) for name in _REGIONS if name in table}
    return Board(found[0], **regions, **table)


def emulator(core: str) -> Emulator:
    """Return the machine that QEMU runs the core's programs on."""
    table = _tables()[_EMULATORS][core]
    like = load(table["board"])
    return Emulator(table["machine"], table["cpu"], like.flash, like.ram)


def _is_named(name: str, text: str) -> bool:
    """Whether the text means the board: by its name, another spelling of it, or its name in Zephyr or the SDK."""
    if text.lower() == name:
        return True
    plain = _plain(text)
    table = _tables()[name]
    others = (_plain(table.get("zephyr", "")), _plain(name))
    return bool(plain) and (plain in others or any(fnmatch(plain, form) for form in table["aliases"]))


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
