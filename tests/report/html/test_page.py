from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

from openneutron.report.html import page
from openneutron.report.html.page import tiles
from openneutron.report.model import NodeVerdict, Report, Stock, WhatIf, Whole
from tests.report.samples import report

VOID = {"meta", "link", "br", "input"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects what could reach out of the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [value for key, value in attrs if key == "id" and value]
        self.links += [value for key in ("src", "href") if (value := given.get(key))]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_beside_it() -> None:
    text = page(report())
    found = Outline(text)
    assert all(link.startswith("#") or link == "data:," for link in found.links)
    assert "http://" not in text and "https://" not in text and "@import" not in text
    assert {"graph", "timeline", "memory", "layers", "change"} <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))


def test_names_from_the_model_cannot_become_markup() -> None:
    evil = "</script><script>alert(1)</script>"
    text = page(dataclasses.replace(report(), source=evil, nodes=(NodeVerdict(evil, evil, False, evil, "", evil),)))
    Outline(text)
    assert evil not in text
    data = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert data is not None and json.loads(data[1])["boxes"][0]["lines"][0] == ["operator", evil]


def test_measured_layers_have_columns_and_a_tile_and_others_have_none() -> None:
    assert 'data-key="sqnr"' not in page(report()) and "Accuracy" not in page(report())
    first, second = report().kernels
    kernels = (dataclasses.replace(first, sqnr=31.25, lsb=0.0), second)
    text = page(dataclasses.replace(report(), kernels=kernels, output_sqnr=28.0))
    Outline(text)
    assert "31.2 dB" in text and text.count('data-key="lsb"') == 3
    assert "28.0" in text and "output against float; 0 LSB from LiteRT" in text


def test_what_was_tried_in_vain_is_told_apart_from_advice() -> None:
    tried = WhatIf("Prefetch", "--fetch-constants-to-sram", "imxrt700", 300, 0.00093, 4096)
    better = WhatIf("Search", "--optimize max", "imxrt700", 200, 0.00062, 1536)
    text = page(dataclasses.replace(report(), what_ifs=(tried, better)))
    Outline(text)
    assert "Tried, and no better: <code>--fetch-constants-to-sram</code>" in text
    assert text.count('<li class="card') == 1 and "-19.5 % time" in text


WHOLE = Whole(
    "neutron", npu_milliseconds=0.00077, cpu_milliseconds=2.0, milliseconds_low=1.5, milliseconds_high=2.7,
    arena_bytes=9_000_000, delegate_bytes=1024,
)  # fmt: skip


def test_the_head_begins_with_the_whole_program_and_what_does_not_fit_is_red() -> None:
    large = dataclasses.replace(report(), whole=WHOLE)
    found = tiles(large)
    assert [tile.label for tile in found[:4]] == ["Open schedule", "NPU alone", "Whole memory", "Largest graph"]
    assert found[0].figure == "2.001" and found[0].note.startswith("1.500 to 2.700 ms, NPU 0.0008, CPU 2.000")
    assert found[2].part > 1 > found[3].part
    text = page(large)
    assert '<div class="bar over">' in text
    assert '<p class="warning">it does not fit the RAM of imxrt700: ' in text
    assert '<p class="warning">' not in page(report()) and '<div class="bar over">' not in page(report())


def test_the_boards_figure_comes_first_and_the_head_says_whose_the_others_are() -> None:
    stock = Stock(operators_total=3, milliseconds=1.25, milliseconds_low=1.0, milliseconds_high=1.5, arena_bytes=4096)
    known = dataclasses.replace(report(), stock=stock)
    first, second = tiles(known)[:2]
    assert (first.label, first.figure) == ("On a board", "1.250")  # as the table below it says
    assert first.note.startswith("1.000 to 1.500 ms, 4.0 KiB; by NXP")
    assert second.label == "NPU, open schedule"
    assert "the other figures are the open schedule" in page(known) and "On a board" not in page(report())


def test_the_program_in_flash_is_held_against_the_boards() -> None:
    def part(**more: int) -> float:
        return next(
            t for t in tiles(dataclasses.replace(report(), target="mcxn94x", **more)) if t.label == "Flash"
        ).part

    assert part() == 2048 / (2 << 20) and part(flash_bytes=1024) == 2.0


def test_a_what_if_has_its_interval() -> None:
    here = {"milliseconds_low": 0.4, "milliseconds_high": 0.6}
    better = WhatIf("Search", "", "imxrt700", 200, 0.5, 1536, **here)
    there = dataclasses.replace(
        better, change="Run on imx95", target="imx95", milliseconds=0.1, peak_bytes=4500512, whole=True
    )
    totals = dataclasses.replace(report().totals, milliseconds=0.6)
    text = page(dataclasses.replace(report(), totals=totals, whole=WHOLE, what_ifs=(better, there)))
    assert "0.500 ms, 0.400 to 0.600, 200 cycles" in text
    assert (
        "0.100 ms, 0.400 to 0.600 for the whole program" in text and "-95.0 % time" in text and "-50.0 % memory" in text
    )


def test_an_empty_report_is_a_page_too() -> None:
    text = page(Report(target="imxrt700"))
    Outline(text)
    assert "The report has no nodes." in text and 'id="timeline"' not in text


def test_a_target_without_public_figures_is_shown_without_them() -> None:
    text = page(dataclasses.replace(report(), target="imx943"))
    assert "Array in use" not in text and "250 cycles" in text


def test_the_same_report_gives_the_same_page() -> None:
    assert page(report()) == page(report())


def test_layers_go_by_their_module_and_low_ones_are_flagged() -> None:
    first, second = report().kernels
    kernels = (dataclasses.replace(first, module="features.0.conv", sqnr=12.5), dataclasses.replace(second, sqnr=41.0))
    text = page(dataclasses.replace(report(), kernels=kernels))
    assert '>features.0.conv<span class="second">conv</span>' in text
    assert text.count('class="low"') == 1 and ">12.5 dB</span>" in text
    assert 'id="layer-filter"' in text and kernels[1].layer == "relu"


def test_the_border_is_not_counted_against_the_npu() -> None:
    nodes = (
        NodeVerdict("q", "q.quantize_per_tensor.default", False),
        NodeVerdict("conv", "aten.convolution.default", True, partition=0, inputs=("q",)),
        NodeVerdict("dq", "q.dequantize_per_tensor.default", False, inputs=("conv",)),
    )
    tile = next(one for one in tiles(dataclasses.replace(report(), nodes=nodes)) if one.label == "On the NPU")
    assert (tile.figure, tile.unit, tile.part) == ("1", "of 1", 1.0)
    assert tile.note == "PyTorch nodes, 1 graph, and 2 border nodes on the CPU"
