"""Every error of the driver that can be provoked is provoked by a C test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r"^    X\((\w+),", (ROOT / "runtime/include/neutron_errors.h").read_text(), re.MULTILINE)
# test_errors.c and mutate.c only talk about errors.
TESTS = [path for path in (ROOT / "tests/c").glob("test_*.c") if path.name != "test_errors.c"]


def test_the_table_is_read() -> None:
    assert len(NAMES) > 30 and {"CHECKSUM", "TIMEOUT", "NO_MEMORY"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_error_is_expected_somewhere(name: str) -> None:
    wanted = re.compile(rf"NEUTRON_ERROR_{name}\b")
    assert any(wanted.search(path.read_text()) for path in TESTS), f"no C test expects NEUTRON_ERROR_{name}"
