"""Figures of the README's table of memory are what the reference networks take today; the peer's are not ours to compute."""

from __future__ import annotations

import re

import pytest

import openneutron
from benchmarks.compiler import ROOT, TARGET
from benchmarks.networks import NETWORKS

COLUMNS = {"CifarNet": "cifarnet", "ResNet-8": "resnet8", "DS-CNN": "ds_cnn", "autoencoder": "autoencoder", "VWW": "vww",
           "MobileNetV2": "mobilenet_v2"}  # fmt: skip


def _row(start: str) -> list[str]:
    (line,) = (line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("name", COLUMNS)
def test_peak_and_flash(name: str) -> None:
    at = _row("what | CifarNet").index(name)
    totals = openneutron.compile(NETWORKS[COLUMNS[name]](), target=TARGET).report.totals
    figures = [re.match(r"[\d,.]+", _row(start)[at]) for start in ("peak SRAM", "flash, constants and microcode")]
    assert [found and found[0] for found in figures] == [
        f"{totals.peak_bytes / 1024:,.1f}",
        f"{(totals.weight_bytes + totals.microcode_bytes) / 1024:,.1f}",
    ]
