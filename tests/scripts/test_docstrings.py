"""The drawing of docstrings is complete, repeatable, and shows where each one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import docstrings

SOURCE = '''"""A module."""
class One(Base):
    """A class."""
    def two(self, x: int, *, y: str = "") -> bool:
        """Return a method's
        result."""
def three():
    pass
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "source.py").write_text(SOURCE)
    return tmp_path


def test_every_docstring_is_found_with_its_signature(folder: Path) -> None:
    found = {one.signature: one for one in docstrings.docstrings([folder])}
    method = "def two(self, x: int, *, y: str='') -> bool"
    assert set(found) == {"module", "class One(Base)", method}
    assert found[method].where == f"{folder / 'source.py'}:4"
    assert found[method].text == "Return a method's\nresult."


def test_the_same_seed_draws_the_same_docstrings(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = []
    for seed in ("1", "1", "2"):
        docstrings.main(["--seed", seed, "--count", "5"])
        drawn.append(capsys.readouterr().out)
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0].startswith(" 1. src/openneutron/") and " 5. " in drawn[0] and " 6. " not in drawn[0]
