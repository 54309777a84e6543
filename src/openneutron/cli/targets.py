"""`openneutron targets`: the chips that can be compiled for, with the figures the cycle model uses."""

from __future__ import annotations

from typing import Annotated

import typer


def list_targets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the targets: array, clock and memory of each.

    Example: openneutron targets
    """
    import dataclasses
    import json

    from openneutron import targets
    from openneutron.cli import console

    found = [targets.load(name) for name in targets.names()]
    if as_json:
        console.put(json.dumps([dataclasses.asdict(target) for target in found], indent=2))
        return
    from rich.table import Table

    table = Table(header_style="cyan", box=None)
    for heading in ("target", "chip"):
        table.add_column(heading)
    for heading in ("array", "MACs/cycle", "clock", "SRAM", "TCM"):
        table.add_column(heading, justify="right")
    for target in found:
        array = f"{target.cores}x{target.units}x{target.length}"
        clock = f"{target.clock_hz / 1e6:g} MHz"
        memory = (_kib(target.sram_bytes), _kib(target.tcm_bytes))
        table.add_row(target.name, target.description, array, f"{target.macs_per_cycle}", clock, *memory)
    console.stdout().print(table)


def _kib(size: int) -> str:
    return f"{size // 1024:,} KiB" if size else "-"
