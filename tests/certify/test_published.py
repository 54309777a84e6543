"""The published tables are those of the registries."""

from __future__ import annotations

from pathlib import Path

from openneutron.certify import kernels
from openneutron.certify import published as table
from openneutron.compiler.back.publish import render_published


def test_it_is_current() -> None:
    assert Path(table.__file__).read_text(encoding="utf-8") == render_published(), "run make generate"


def test_every_kernel_has_a_rule() -> None:
    kernels.load()
    missing = {name for name, *_ in table.KERNELS.values()} - set(kernels.RULES)
    assert not missing, f"write a rule in certify/kernels for {sorted(missing)}"
