"""The rows of docs/board.md are what its script makes of the reference networks today."""

from __future__ import annotations

import pytest

from benchmarks import board_page


@pytest.mark.parametrize("name", board_page.REFERENCE)
def test_the_page_has_todays_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_page, "REFERENCE", (name,))
    lines = board_page.PAGE.read_text("utf-8").splitlines()
    rows = list(board_page.reference_rows())
    assert len(rows) == len(board_page.targets.chips())
    assert [row for row in rows if row not in lines] == []
