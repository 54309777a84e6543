"""Instructions that an image executes under QEMU, in all and for each function, counted by a plugin (instructions.c)."""

from __future__ import annotations

import subprocess
import tempfile
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from openneutron.errors import RuntimeFailure
from tests.firmware import image

SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True)
class Counted:
    """A finished run, and its instructions by function."""

    run: image.Run
    functions: Counter[str]

    @property
    def total(self) -> int:
        return self.functions.total()


def count(path: Path, cpu: str = image.CPU) -> Counted:
    """Run an image on a processor and count what it executes; an image that fails raises with what it printed.

    A conditional instruction whose condition is false counts like any other.
    """
    with tempfile.TemporaryDirectory() as folder:
        plugin, counts = Path(folder, "instructions.so"), Path(folder, "counts")
        subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", SOURCE, "-o", plugin], check=True)
        ran = image.run_image(path, cpu, options=("-plugin", f"{plugin},to={counts}"))
        if ran.status:
            raise RuntimeFailure(f"{path.name} ended with status {ran.status}: {ran.text.strip()}")
        blocks = [line.split() for line in counts.read_text().splitlines()]
    functions = _functions(path)
    starts = [start for start, _ in functions]
    found: Counter[str] = Counter()
    for address, instructions, runs in blocks:
        _, name = functions[bisect_right(starts, int(address, 16)) - 1]
        found[name] += int(instructions) * int(runs)
    return Counted(ran, found)


def _functions(path: Path) -> list[tuple[int, str]]:
    """Return the addresses of the image's functions, ascending, with their names; before the first one is nothing."""
    listed = subprocess.run(["arm-none-eabi-nm", path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    # Of a Thumb function nm prints the address it begins at, of its entries in assembly the address with bit 0 set.
    return [(0, "?"), *sorted((int(at, 16) & ~1, name) for at, kind, name in rows if kind in "tT")]
