"""The table of attacks is complete: every row has a test that exists, every test here has its row."""

from __future__ import annotations

import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def test_rows_and_tests() -> None:
    rows = tomllib.loads((HERE / "attacks.toml").read_text("utf-8"))["attack"]
    named = {test for row in rows for test in row["tests"]}
    assert all(row["what"] and row["then"] and row["tests"] for row in rows)
    assert all((HERE / test).is_file() for test in named)
    assert {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name} == {
        test for test in named if not test.startswith("..")
    }
