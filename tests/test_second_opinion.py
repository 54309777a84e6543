"""`make test-full`: each kernel at 0 LSB from its golden, and the page's list of exceptions is what is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.second_opinion import opinions, table

PAGE = Path(__file__).parents[1] / "docs" / "numerics.md"


@pytest.mark.full
def test_every_kernel_agrees_with_its_golden_and_the_page_lists_the_exceptions() -> None:
    found = list(opinions())
    print(table(found))
    assert len({one.code for one in found}) > 60
    wrong = [one for one in found if one.to_golden != 0]
    assert not wrong, wrong
    assert table(found) in PAGE.read_text("utf-8"), "run python benchmarks/second_opinion.py --write"
