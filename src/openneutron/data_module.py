"""Format tables as the text of a Python module, for generated files.

Example:
    >>> print(data_module("Squares. Written by hand.", {"SQUARES": ("dict[int, int]", {1: 1, 2: 4})}))
    \"""Squares. Written by hand.\"""
    <BLANKLINE>
    from __future__ import annotations
    <BLANKLINE>
    from typing import Any
    <BLANKLINE>
    # fmt: off
    # ruff: noqa: E501
    SQUARES: dict[int, int] = {
        1: 1,
        2: 4,
    }
    <BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HEAD = """\
from __future__ import annotations

from typing import Any

# fmt: off
# ruff: noqa: E501
"""


def data_module(doc: str, tables: Mapping[str, tuple[str, Mapping[Any, Any]]]) -> str:
    """Return a module with a docstring and tables by name; each table is its type annotation and its entries."""
    parts = [f'"""{doc}"""\n\n', _HEAD]
    for name, (kind, entries) in tables.items():
        rows = "".join(f"    {key!r}: {value!r},\n" for key, value in entries.items())
        parts.append(f"{name}: {kind} = {{\n{rows}}}\n")
    return "".join(parts)
