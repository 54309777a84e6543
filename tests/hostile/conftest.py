"""Hostile files are tried under a memory limit: an attack that works fails its test, not the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Beside what the process has mapped already. The attacks ask for 2 GiB and more.
MORE = 3 << 29


@pytest.fixture(autouse=True)
def memory_limit() -> Iterator[None]:
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MORE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
