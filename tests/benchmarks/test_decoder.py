"""The decoder's table: what the page on language models promises about perplexity and graphs."""

from __future__ import annotations

import pytest

from benchmarks import decoder
from benchmarks.decoder import ROOT

PROMISES = {"default": 1.10, "int16": 1.02, "int4": 1.10}  # of docs/language-models.md


def test_every_precision_is_explained() -> None:
    assert list(decoder.PRECISIONS) == list(decoder.MEANING)
    assert PROMISES.keys() <= decoder.PRECISIONS.keys()


def test_the_page_keeps_what_it_promises() -> None:
    lines = (ROOT / "docs" / "language-models.md").read_text().splitlines()
    headings = decoder.page_lines(
        [("form", "perplexity", "x float", "same answer", "bytes of weights", "cycles/token", "graphs")]
    )
    first = lines.index(headings[0])
    assert lines[first + 1] == headings[1]
    rows = [line.strip("| ").split(" | ") for line in lines[first + 2 : first + 7]]
    assert [row[0] for row in rows] == ["float", *decoder.PRECISIONS]
    found = {row[0]: float(row[2]) for row in rows}
    assert all(found[name] <= most for name, most in PROMISES.items())


@pytest.mark.full
def test_perplexity_and_graphs() -> None:
    measured = decoder.tables(list(decoder.PRECISIONS), 4)
    page = (ROOT / "docs" / "language-models.md").read_text().splitlines()
    assert set(decoder.page_lines(measured)) <= set(page)
    headings, *rows = measured
    found = {row[0]: dict(zip(headings, row, strict=True)) for row in rows}
    for name, most in PROMISES.items():
        assert float(found[name]["x float"]) <= most, found[name]
    sizes = {name: int(found[name]["bytes of weights"].replace(",", "")) for name in decoder.PRECISIONS}
    assert sizes["int4"] < 0.60 * sizes["int8"]  # its rotary tables have 16 bits
    assert sizes["int4"] < 0.67 * sizes["int16"]
    for name in decoder.PRECISIONS:
        assert (found[name]["graphs"], found[name]["CPU"]) == ("1", "0")
