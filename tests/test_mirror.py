"""Tests mirror sources: every module has a test of its name, or a line that says which test covers it and why."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "openneutron"
# Files without behaviour of their own.
NOTHING_TO_TEST = {"__init__.py", "__main__.py", "_version.py"}


def lines() -> list[tuple[list[str], str, str]]:
    """The modules, test and reason of each line."""
    found = []
    for row in (ROOT / "tests" / "covered_elsewhere.txt").read_text("utf-8").splitlines():
        if row and row[0] != "#":
            parts = [part.strip() for part in row.split("|")]
            assert len(parts) == 3 and all(parts), f"each line is: module | test | why, not {row}"
            folder, colon, names = parts[0].partition(": ")
            found.append(([folder + name for name in names.split()] if colon else [parts[0]], parts[1], parts[2]))
    return found


def listed() -> list[str]:
    return [module for modules, _, _ in lines() for module in modules]


def without_own_test() -> list[str]:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        module = path.relative_to(SOURCES)
        own = ROOT / "tests" / module.parent / f"test_{module.stem.lstrip('_')}.py"
        if path.name not in NOTHING_TO_TEST and not own.is_file():
            found.append(module.as_posix())
    return found


def test_every_module_is_tested_somewhere() -> None:
    missing = sorted({*without_own_test()} - {*listed()})
    assert not missing, "write a test of its name, or a line in tests/covered_elsewhere.txt"


def test_what_covers_them_exists() -> None:
    for modules, test, _ in lines():
        place = ROOT / test
        assert place.is_file() or any(place.glob("**/test_*.py")), f"{modules}: {test} does not exist"


def test_no_line_is_stale() -> None:
    """A module that has a test of its own by now, is gone, or is listed twice, leaves the list."""
    modules = listed()
    assert len({*modules}) == len(modules)
    assert not {*modules} - {*without_own_test()}, "these have a test of their own name, or do not exist"
