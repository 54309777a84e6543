"""Check whether a program fits its chip: RAM and flash of the whole program against the target's.

Example:
    >>> [str(one) for one in shortfalls(report)]
    ['it does not fit the RAM of mcxn94x: 1,363,600 bytes are needed, 524,288 there: 839,312 too many (…)']
"""

from __future__ import annotations

from typing import NamedTuple

from openneutron.machine import targets
from openneutron.report.model import Report


class Shortfall(NamedTuple):
    """A memory that is too small: its name, the needed and available bytes, and what uses it."""

    memory: str
    target: str
    needed: int
    there: int
    taken_by: str

    def __str__(self) -> str:
        return (
            f"it does not fit the {self.memory} of {self.target}: {self.needed:,} bytes are needed, {self.there:,} there: "
            f"{self.needed - self.there:,} too many ({self.taken_by})"
        )


def shortfalls(report: Report) -> list[Shortfall]:
    """Return the memories of the target that are too small for the program; none for an unknown target."""
    if report.target not in targets.names():
        return []
    target = targets.load(report.target)
    totals, whole = report.totals, report.whole
    found: list[Shortfall] = []
    needed, parts = totals.peak_bytes, "I/O, scratch and prefetch of the largest graph"
    beside = 0 if target.subsystem else totals.context_bytes + totals.stack_bytes
    if totals.runtime_bytes and not target.subsystem:
        needed = totals.runtime_bytes
        parts += f", {beside:,} of context and stack"
    if whole.recipe:
        needed = whole.memory_bytes + beside
        parts = f"{whole.arena_bytes:,} of ExecuTorch's arena, {whole.delegate_bytes:,} of delegates"
        parts += f", {beside:,} of context and stack" if beside else ""
        if any(node.code == "border" and not node.delegated for node in report.nodes):
            parts += "; inputs and outputs in float: with --int8-io they take a quarter"
    stored = stored_bytes(report)
    if not target.npu_reads_flash and not totals.prefetch_bytes and not target.subsystem:
        # Weights that are not fetched layer by layer are in RAM all the time.
        needed += stored
        parts += f"; {stored:,} of program and weights, which this NPU cannot read out of flash"
    if target.sram_bytes and needed > target.sram_bytes:
        found.append(Shortfall("RAM", target.name, needed, target.sram_bytes, parts))
    there = report.flash_bytes or target.flash_bytes
    if there and stored > there:
        parts = f"{totals.weight_bytes:,} of weights, {totals.microcode_bytes:,} of microcode"
        parts += "" if report.flash_bytes else "; --flash SIZE tells of a board's external flash"
        found.append(Shortfall("flash", target.name, stored, there, parts))
    return found


def stored_bytes(report: Report) -> int:
    """Return the bytes in flash: the program's file, or weights and microcode of a LiteRT model."""
    files = [size for name, size in report.files.items() if name.endswith("pte")]
    return files[0] if files else report.totals.weight_bytes + report.totals.microcode_bytes


def warnings_of(report: Report) -> list[str]:
    """Return all warnings: what does not fit, and what was found during compilation."""
    return [*map(str, shortfalls(report)), *report.warnings]
