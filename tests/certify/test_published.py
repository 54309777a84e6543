"""The published tables are those of the registries."""

from __future__ import annotations

from pathlib import Path

from openneutron.certify import kernels
from openneutron.certify import published as table
from openneutron.compiler.back.publish import published


def test_it_is_current() -> None:
    assert Path(table.__file__).read_text(encoding="utf-8") == published(), (
        "run python -m openneutron.compiler.back.publish"
    )


# Files that call these are refused by name (docs/compiler.md, Proof): no rule has been written yet.
WITHOUT_RULE = {"lstm", "svdf"}


def test_every_kernel_has_a_rule_or_is_named() -> None:
    kernels.load()
    missing = {name for name, *_ in table.KERNELS.values()} - set(kernels.RULES)
    assert missing == WITHOUT_RULE, f"write a rule in certify/kernels for {sorted(missing ^ WITHOUT_RULE)}"
