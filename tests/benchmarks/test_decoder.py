"""The decoder's table: what the page on language models promises about perplexity and graphs."""

from __future__ import annotations

import pytest

from benchmarks import decoder

PROMISES = {"default": 1.10, "int16": 1.02, "int4": 1.10}  # of docs/language-models.md


def test_every_precision_is_explained() -> None:
    assert list(decoder.PRECISIONS) == list(decoder.MEANING)
    assert PROMISES.keys() <= decoder.PRECISIONS.keys()


@pytest.mark.full
def test_perplexity_and_graphs() -> None:
    headings, *rows = decoder.tables(list(decoder.PRECISIONS), 4)
    found = {row[0]: dict(zip(headings, row, strict=True)) for row in rows}
    for name, most in PROMISES.items():
        assert float(found[name]["x float"]) <= most, found[name]
    sizes = {name: int(found[name]["weights"].replace(",", "")) for name in decoder.PRECISIONS}
    assert sizes["int4"] < 0.60 * sizes["int8"]  # its rotary tables have 16 bits
    assert sizes["int4"] < 0.67 * sizes["int16"]
    for name in decoder.PRECISIONS:
        assert (found[name]["graphs"], found[name]["CPU"]) == ("1", "0")
