"""Instructions on 64-bit Arm that the page shows are what the benchmark counts today."""

from __future__ import annotations

import re
import shutil
import sys

import pytest

from benchmarks import aarch64

TOOLS = ("qemu-aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++")


def shown() -> list[tuple[str, int, float]]:
    """Set, instructions and ratio of each row of the page."""
    page = (aarch64.ROOT / "docs" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\|.*\| (neon|dotprod|i8mm) \| ([\d,]+) \| ([\d.]+) \| [\d.]* ?\|$", page, re.MULTILINE)
    return [(name, int(count.replace(",", "")), float(ratio)) for name, count, ratio in rows]


def test_the_page_has_a_row_for_every_loop() -> None:
    sets = [
        name
        for kernel, *_ in aarch64.LAYERS
        for name in (aarch64.SETS if kernel in aarch64.DENSE else aarch64.SETS[:1])
    ]
    assert [name for name, _, _ in shown()] == sets


@pytest.mark.full
def test_the_page_has_what_is_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another release of the cross compiler makes a little more or less of it."""
    if absent := [name for name in TOOLS if shutil.which(name) is None]:
        pytest.skip(f"{', '.join(absent)} not found")
    monkeypatch.setattr(sys, "argv", ["aarch64.py"])
    aarch64.main()
    counted = re.findall(r" (neon|dotprod|i8mm) +([\d,]+) +([\d.]+) *$", capsys.readouterr().out, re.MULTILINE)
    for (name, count, ratio), (set_, instructions, measured) in zip(shown(), counted, strict=True):
        assert name == set_
        assert count == pytest.approx(int(instructions.replace(",", "")), rel=0.05)
        assert ratio == pytest.approx(float(measured), rel=0.05)
