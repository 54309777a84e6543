"""Targets: one TOML file of capabilities per chip or CPU. Adding a file adds a target; no list in the code has to change.

Other modules decide by capabilities. They name a chip only as a default value, and where a recipe is for one chip
(`imxrt700cm` in `executorch/engines.py`).

Example:
    >>> target = load("imxrt700")
    >>> target.macs_per_cycle
    64
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from openneutron.errors import OptionError

FOLDER = os.path.dirname(__file__)
# Names that NXP's converters accept but for which no figures are public.
UNDOCUMENTED = ("imx943", "imx952", "mcxn54x", "s32k5", "s32n79")


@dataclass(frozen=True)
class Cost:
    """Constants of the cycle model, in 1/1024 cycle so that all cost arithmetic is integer."""

    mac: int
    wide: int  # a factor, not a cost
    lane: int
    row: int
    weight_byte: int
    decode_byte: int  # at most weight_byte: coded weights never load more slowly than plain ones
    element: int
    call: int
    tile_pixels: int
    dma_byte: int
    dma_start: int
    dma_overlaps: bool
    output: int = 0  # a processor rescales outputs one by one, an array beside the next products


@dataclass(frozen=True)
class Power:
    """Currents of a chip at a voltage, running an inference and asleep between two; each source says if it is assumed."""

    volts: float
    active_milliamperes: float
    active_source: str
    sleep_milliamperes: float
    sleep_source: str

    @property
    def sources(self) -> tuple[str, str]:
        """A sentence for each current."""
        return (
            f"running: {self.active_milliamperes:g} mA ({self.active_source})",
            f"asleep: {self.sleep_milliamperes:g} mA ({self.sleep_source})",
        )


@dataclass(frozen=True)
class Target:
    """The capabilities of a chip; the TOML files give the source of each figure."""

    name: str
    description: str
    hw_version: int
    subsystem: bool
    cores: int
    units: int
    length: int
    clock_hz: int
    cpu: str  # the core that runs the operators that stay on the CPU
    cpu_clock_hz: int
    calibrated: bool  # the cycle model was fitted on latencies of this target
    sram_bytes: int
    flash_bytes: int  # 0: weights are not limited by a flash
    npu_reads_flash: bool  # else weights must be in SRAM, or fetched there
    tcm_bytes: int
    tcm_banks: int
    alignment: int
    cost: Cost
    power: Power | None = None  # None: no currents are public
    processor: bool = False  # a CPU without an NPU: its kernels are loops, `units` and `length` their blocks
    cycles_per_instruction: float = 0.0  # of a processor's loops: what its costs are counted instructions times

    @property
    def macs_per_cycle(self) -> int:
        """INT8 multiply-accumulates per cycle of the whole array."""
        return self.cores * self.units * self.length

    @property
    def ram(self) -> str:
        """The kind of memory that `sram_bytes` counts: SRAM, or DDR on a chip that runs Linux."""
        return "DDR" if self.sram_bytes >= 1 << 30 else "SRAM"

    def milliseconds(self, cycles: int) -> float:
        """Cycles at the target's clock, as milliseconds."""
        return cycles / self.clock_hz * 1e3


@cache
def names() -> tuple[str, ...]:
    """Names of the targets that can be compiled for, in alphabetical order."""
    return tuple(sorted(name.removesuffix(".toml") for name in os.listdir(FOLDER) if name.endswith(".toml")))


@cache
def chips() -> tuple[str, ...]:
    """Names of the targets that have an NPU, in alphabetical order.

    Example:
        >>> "imxrt700" in chips(), "cortex_m33" in chips()
        (True, False)
    """
    return tuple(name for name in names() if not load(name).processor)


def is_processor(name: str) -> bool:
    """Whether a name is that of a target without an NPU, whose core runs the kernels.

    Example:
        >>> is_processor("cortex_m33"), is_processor("imxrt700"), is_processor("imx943")
        (True, False, False)
    """
    return name in names() and load(name).processor


@cache
def geometries() -> tuple[str, ...]:
    """Names of targets that differ in more than clocks, sizes and prices: all chips, and one processor for all of them.

    Example:
        >>> "mcxn94x" in geometries(), "cortex_m33" in geometries(), "cortex_m7" in geometries()
        (True, True, False)
    """
    return (*chips(), "cortex_m33")


@cache
def _table(name: str) -> dict[str, Any]:
    """Read the TOML file of a target."""
    with open(f"{FOLDER}/{name}.toml", "rb") as file:
        return tomllib.load(file)


@cache
def canonical_name(text: str) -> str:
    """Return the target's name for another spelling, a part number or a board; the text itself when none matches.

    Example:
        >>> canonical_name("MCXN947"), named("i.MX RT700")
        ('mcxn94x', 'imxrt700')
    """
    plain = "".join(filter(str.isalnum, text.lower()))
    if text.lower() in names():
        return text.lower()
    if plain in (*names(), *UNDOCUMENTED):
        return plain
    from fnmatch import fnmatch

    found = [name for name in names() if any(fnmatch(plain, form) for form in _table(name)["aliases"])]
    return found[0] if len(found) == 1 else text


@cache
def load(name: str) -> Target:
    """Return the target of that name; an `OptionError` for another name suggests one, or lists the known ones."""
    if name in UNDOCUMENTED:
        raise OptionError(
            f"target {name!r} has no public figures, so no machine model exists for it",
            hint=f"use one of {', '.join(names())}, or --converter nxp with NXP's SDK",
        )
    if name not in names():
        from difflib import get_close_matches

        near = (
            [canonical_name(name)] if canonical_name(name) in names() else get_close_matches(name.lower(), names(), n=1)
        )
        known = f"known targets: {', '.join(names())}"
        raise OptionError(f"unknown target {name!r}", hint=f"did you mean {near[0]!r}? {known}" if near else known)
    return of_table(_table(name))


def of_table(table: dict[str, Any]) -> Target:
    """Return the target that a TOML table describes."""
    named_so = {"name": table["name"], "description": table["description"]}
    power = Power(**table["power"]) if "power" in table else None
    return Target(**named_so, **table["npu"], **table["memory"], cost=Cost(**table["cost"]), power=power)
