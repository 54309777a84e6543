from __future__ import annotations

import dataclasses

from openneutron.report.html.pair import lines, pair_page
from openneutron.report.model import Kernel, Report
from tests.report.html.test_page import Outline
from tests.report.samples import report


def changed() -> Report:
    """The sample with a faster convolution, its table gone, a new layer, and half a decibel more."""
    first = report()
    conv = dataclasses.replace(first.kernels[0], cycles=120)
    extra = Kernel(1, 0, "add", "sum<1>", (1,), (1, 8, 8, 4), 0, 1, 30, 10, 15, 5, 0)
    totals = dataclasses.replace(first.totals, cycles=150, milliseconds=0.0005)
    return dataclasses.replace(first, kernels=(conv, extra), totals=totals, output_sqnr=30.5)


def test_figures_are_compared_and_judged() -> None:
    found = {line.label: line for line in lines(dataclasses.replace(report(), output_sqnr=30.0), changed())}
    assert (found["cycles"].texts, found["cycles"].change, found["cycles"].judged) == (("250", "150"), "-40.0%", "good")
    assert found["weights"].change == "" and found["SQNR against float"].change == "+0.5 dB"
    worse = {line.label: line for line in lines(changed(), report())}
    assert worse["cycles"].judged == "bad" and "SQNR against float" not in worse


def test_the_page_joins_layers_by_name_and_is_well_formed() -> None:
    text = pair_page(report(), changed())
    found = Outline(text)
    assert "://" not in text and {"figures", "layers"} <= set(found.ids)
    order = [text.index(f'title="{name}"') for name in ("conv", "relu", "sum&lt;1&gt;")]
    assert order == sorted(order), "the largest changes come first"
    assert "-80</td>" in text
    assert "sum<1>" not in text


def test_two_equal_reports_have_no_changes() -> None:
    assert all(not line.change for line in lines(report(), report()))
    assert "no target" in pair_page(Report(), Report())
