"""Targets are TOML files of capabilities; nothing else in the code knows a target by name.

Example:
    >>> target = load("imxrt700")
    >>> target.macs_per_cycle
    64
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from openneutron.errors import OptionError

_FOLDER = Path(__file__).parent  # importlib.resources would load zip and compression modules, 10 ms of every start
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
    element: int
    call: int
    tile_pixels: int
    dma_byte: int
    dma_start: int
    dma_overlaps: bool


@dataclass(frozen=True)
class Target:
    """What the compiler and the runtime know of a chip; see the TOML files for the source of each figure."""

    name: str
    description: str
    hw_version: int
    subsystem: bool
    cores: int
    units: int
    length: int
    clock_hz: int
    cpu_clock_hz: int  # 0: there is no model of the CPU
    calibrated: bool  # the cycle model was fitted on latencies of this target
    sram_bytes: int
    flash_bytes: int  # 0: weights are not limited by a flash
    npu_reads_flash: bool  # else weights must be in SRAM, or fetched there
    tcm_bytes: int
    tcm_banks: int
    alignment: int
    cost: Cost

    @property
    def macs_per_cycle(self) -> int:
        """INT8 multiply-accumulates per cycle of the whole array."""
        return self.cores * self.units * self.length

    def milliseconds(self, cycles: int) -> float:
        """Cycles at the target's clock, as milliseconds."""
        return cycles / self.clock_hz * 1e3


@cache
def names() -> tuple[str, ...]:
    """Names of the targets that can be compiled for, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


@cache
def load(name: str) -> Target:
    """The target of that name; an `OptionError` lists the known ones."""
    if name in UNDOCUMENTED:
        raise OptionError(
            f"target {name!r} has no public figures, so no machine model exists for it",
            hint=f"use one of {', '.join(names())}, or --converter nxp with NXP's SDK",
        )
    if name not in names():
        raise OptionError(f"unknown target {name!r}", hint=f"known targets: {', '.join(names())}")
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))
    cost = Cost(**{field.name: table["cost"][field.name] for field in fields(Cost)})
    return Target(name=table["name"], description=table["description"], **table["npu"], **table["memory"], cost=cost)
