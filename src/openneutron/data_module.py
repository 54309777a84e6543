"""The text of Python files that are written by a program and hold nothing but tables: quick to import, easy to compare.

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
    """A module with a docstring and tables by name: the type as written, and entries, one on a line."""
    parts = [f'"""{doc}"""\n\n', _HEAD]
    for name, (kind, entries) in tables.items():
        rows = "".join(f"    {key!r}: {value!r},\n" for key, value in entries.items())
        parts.append(f"{name}: {kind} = {{\n{rows}}}\n")
    return "".join(parts)
