"""A compiled PyTorch program with its debug bundle."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def program() -> tuple[bytes, Callable[[str], bytes]]:
    """See `tests.mutants.program.compiled_program`."""
    pytest.importorskip("torch")
    from tests.mutants.program import compiled_program

    return compiled_program()
