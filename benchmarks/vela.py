"""Arm's Vela as the peer: runs its command line if it is installed and reads its summary.

`pip install openneutron[bench]` brings it; any other installation can be named with --vela.
"""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import command

# 64 MAC per cycle as on imxrt700; constants stay in flash, activations in SRAM; least memory.
OPTIONS = (
    "--accelerator-config", "ethos-u55-64", "--optimise", "Size", "--config", "Arm/vela.ini",
    "--system-config", "Ethos_U55_High_End_Embedded", "--memory-mode", "Sram_Only",
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """Vela's summary of a model:

    SRAM, cycles on its own machine, bytes of encoded weights and of everything in flash.
    """

    sram_kib: float
    cycles: int
    weight_bytes: int
    flash_bytes: int


def find(named: str = "") -> str:
    """Return the command to run, "" if there is none."""
    beside = Path(sys.executable).parent / "vela"
    return named or shutil.which("vela") or (str(beside) if beside.exists() else "")


def contestant(vela: str, model: Path, folder: Path) -> Callable[[], None]:
    """Return Vela's whole command line on a model as a contestant."""
    return command([vela, str(model), *OPTIONS, "--output-dir", str(folder)])


def estimate(vela: str, model: Path) -> Estimate:
    """Compile with Vela and read its summary."""
    with tempfile.TemporaryDirectory() as folder:
        contestant(vela, model, Path(folder))()
        (summary,) = Path(folder).glob("*_summary_*.csv")
        with summary.open(encoding="utf-8") as file:
            (row,) = csv.DictReader(file)
    return Estimate(
        float(row["sram_memory_used"]),
        round(float(row["cycles_total"])),
        round(float(row["total_npu_encoded_weights"])),
        round(1024 * (float(row["on_chip_flash_memory_used"]) + float(row["off_chip_flash_memory_used"]))),
    )
