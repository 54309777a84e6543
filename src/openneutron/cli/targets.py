"""`openneutron targets`: the chips that can be compiled for, with the figures the cycle model uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from openneutron.machine.targets import Target


def list_targets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the targets: array, clock and memory of each.

    Example: openneutron targets
    """
    import dataclasses
    import json

    from openneutron.machine import targets
    from openneutron.terminal import console

    found = [targets.load(name) for name in targets.names()]
    if as_json:
        console.put(json.dumps([dataclasses.asdict(target) for target in found], indent=2))
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    table.add_column("target")
    for heading in ("array", "MACs/cycle", "clock", "RAM", "TCM", "flash"):
        table.add_column(heading, justify="right")
    for target in found:
        array = f"{target.cores}x{target.units}x{target.length}"
        clock = f"{target.clock_hz / 1e6:g} MHz"
        memory = (_ram(target), _kib(target.tcm_bytes), _kib(target.flash_bytes))
        table.add_row(target.name, array, f"{target.macs_per_cycle}", clock, *memory)
    screen = console.stdout()
    screen.print(table)
    for target in found:  # below, because a column of them would leave no room for the figures on 80 columns
        screen.print(f" {target.name}: {target.description}", markup=False)


def _kib(size: int) -> str:
    return f"{size // 1024:,} KiB" if size else "-"


def _ram(target: Target) -> str:
    """What models live in, in a unit that can be read."""
    size = f"{target.sram_bytes >> 30} GiB" if target.sram_bytes >= 1 << 30 else _kib(target.sram_bytes)
    return size if target.ram == "SRAM" else f"{size} {target.ram}"
