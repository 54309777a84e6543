"""Every benchmark is a command: it imports what there is, and says what it measures."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def commands() -> list[str]:
    """Those that are run, not imported by others."""
    return sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text("utf-8"))


@pytest.mark.parametrize("name", commands())
def test_a_benchmark_imports_what_there_is(name: str) -> None:
    """What it needs first and what it asks for later, by name: a page whose command is broken cannot be made again."""
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("openneutron", "benchmarks", "tests")):
            found = importlib.import_module(str(node.module))
            for alias in node.names:
                there = hasattr(found, alias.name) or f"{node.module}.{alias.name}" in sys.modules
                assert there or importlib.import_module(f"{node.module}.{alias.name}")
