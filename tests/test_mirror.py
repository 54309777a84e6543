"""Tests mirror sources: every module has a test of its name, or a line that says which test covers it and why."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "openneutron"
# Files without behaviour of their own.
NOTHING_TO_TEST = {"__init__.py", "__main__.py", "_version.py"}


def lines() -> list[tuple[str, str, str]]:
    """Pattern, test and reason of each line."""
    text = (ROOT / "tests" / "covered_elsewhere.txt").read_text("utf-8")
    rows = [tuple(part.strip() for part in row.split("|")) for row in text.splitlines() if row and row[0] != "#"]
    assert all(len(row) == 3 and all(row) for row in rows), "each line is: module | test | why"
    return rows  # type: ignore[return-value]


def without_own_test() -> list[str]:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        module = path.relative_to(SOURCES)
        own = ROOT / "tests" / module.parent / f"test_{module.stem.lstrip('_')}.py"
        if path.name not in NOTHING_TO_TEST and not own.is_file():
            found.append(module.as_posix())
    return found


def matches(module: str, pattern: str) -> bool:
    # A star stays inside one folder.
    return module.count("/") == pattern.count("/") and fnmatch(module, pattern)


def test_every_module_is_tested_somewhere() -> None:
    patterns = [pattern for pattern, _, _ in lines()]
    missing = [name for name in without_own_test() if not any(matches(name, pattern) for pattern in patterns)]
    assert not missing, "write a test of its name, or a line in tests/covered_elsewhere.txt"


def test_what_covers_them_exists() -> None:
    for pattern, test, _ in lines():
        place = ROOT / test
        assert place.is_file() or any(place.glob("**/test_*.py")), f"{pattern}: {test} does not exist"


def test_no_line_is_stale() -> None:
    names = without_own_test()
    for pattern, _, _ in lines():
        assert any(matches(name, pattern) for name in names), f"{pattern} matches no module without a test of its own"
