from __future__ import annotations

import doctest

from openneutron import data_module


def test_the_example_is_what_is_written() -> None:
    assert doctest.testmod(data_module).attempted
    assert not doctest.testmod(data_module).failed


def test_tables_come_back_as_they_were() -> None:
    tables = {"A": ("dict[str, tuple[int, ...]]", {"one": (1,), "two'": (1, 2)}), "B": ("dict[int, Any]", {})}
    text = data_module.data_module("Two tables.", tables)
    found: dict[str, object] = {}
    exec(compile(text, "tables.py", "exec"), found)
    assert found["__doc__"] == "Two tables."
    assert {name: found[name] for name in tables} == {name: entries for name, (_, entries) in tables.items()}
