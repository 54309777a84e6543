"""Generated files are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.compiler import kernels
from openneutron.compiler.back import generate

ROOT = Path(__file__).resolve().parents[3]
kernels.rules()


@pytest.mark.parametrize("name", sorted(generate.files()))
def test_file_is_what_the_tables_say(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == generate.files()[name], (
        "run python -m openneutron.compiler.back.generate"
    )
