"""The page in a real browser: it renders, hover and sort work, the timeline zooms, and the console stays silent.

With OPENNEUTRON_SCREENSHOTS=folder the documentation's pictures are written there: `make screenshots`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import openneutron as on
from benchmarks.board_networks import BOARD_NETWORKS
from openneutron.cli.main import run
from openneutron.machine import targets
from openneutron.report.model import to_json
from tests import tiny
from tests.report.html.browser import Browser, browser, find

# Picture of the documentation → model, section ("" for the window's first sight), colour scheme.
PICTURES = {
    "report-light.png": ("cifarnet", "", "light"),
    "report-dark.png": ("cifarnet", "", "dark"),
    "report-timeline.png": ("mobilenet_v2", "#timeline", "light"),
    "report-memory.png": ("mobilenet_v2", "#memory", "light"),
    "report-charts.png": ("mobilenet_v2", "#charts", "light"),
    "report-layers.png": ("cifarnet", "#layers", "light"),
    "report-change.png": ("cifarnet", "#change", "light"),
}
IMAGES = Path(__file__).parents[3] / "docs" / "images"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    find()
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module", params=["cifarnet", pytest.param("mobilenet_v2", marks=pytest.mark.full)])
def page(request: pytest.FixtureRequest, window: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The report of a model, open in the window."""
    file = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    assert run(["report", request.param, "-o", str(file)]) == 0
    window.open(file)
    _take(window, request.param)
    return window


def _take(window: Browser, name: str) -> None:
    folder = os.environ.get("OPENNEUTRON_SCREENSHOTS")
    for picture, (model, section, scheme) in PICTURES.items() if folder else ():
        if model == name:
            window.dark(scheme == "dark")
            window.screenshot(Path(str(folder)) / picture, section)
    window.dark(False)


def test_everything_is_drawn(page: Browser) -> None:
    for selector in (
        ".tile",
        ".box.npu",
        ".box.cpu",
        ".part rect",
        ".edges path",
        "svg.memory .block",
        "circle.chosen",
        ".advice li",
    ):
        assert page.script("return document.querySelectorAll(arguments[0]).length", selector) >= 1, selector
    assert page.script("return document.querySelector('#lanes').getBoundingClientRect().height") > 100


FOCUS = "document.querySelector(arguments[0]).focus({preventScroll: true})"


def test_pointing_at_a_node_shows_its_verdict(page: Browser) -> None:
    page.script(FOCUS, ".box.cpu")  # brings it into the pane
    page.point(".box.cpu")
    assert page.shows("#tip", "it quantizes what enters the quantized part")
    assert page.shows("#details .badge", "CPU")
    page.script(FOCUS, ".box.npu")
    page.point(".box.npu")
    assert page.shows("#tip", "runs on: the NPU")
    assert page.shows("#details", "cycles")


def test_no_box_has_the_name_of_a_graph_node(page: Browser) -> None:
    labels = page.script("return [...document.querySelectorAll('.box')].map((box) => box.textContent)")
    assert labels and not any("aten_" in label or "quantized_decomposed_" in label for label in labels)


@pytest.mark.parametrize("key", ["cycles", "weights", "activations", "sqnr"])
def test_layers_sort_by_a_click_and_turn_round_by_another(page: Browser, key: str) -> None:
    column = page.script(
        "return [...document.querySelectorAll('#layer-table th')].findIndex((th) => th.dataset.key === arguments[0])",
        key,
    )
    values = """const rows = [...document.querySelectorAll('#layer-table tbody tr')];
        return rows.map((row) => Number(row.cells[arguments[0]].dataset.value))"""
    page.click(f"#layer-table th[data-key={key}] button")
    first = page.script(values, column)
    assert first == sorted(first, reverse=True) and len(set(first)) > 1
    page.click(f"#layer-table th[data-key={key}] button")
    assert page.script(values, column) == sorted(first)


def test_the_filter_keeps_the_rows_that_hold_every_word(page: Browser) -> None:
    shown = "return [...document.querySelectorAll('#layer-table tbody tr')].filter((row) => !row.hidden).length"
    everything = page.script(shown)
    put = (
        "const f = document.querySelector('#layer-filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))"
    )
    page.script(put, "conv2d  compute")
    assert 0 < page.script(shown) < everything and page.text("#layer-count").endswith(f" of {everything}")
    page.script(put, "")
    assert page.script(shown) == everything


def test_the_memory_map_names_layers_by_their_modules(page: Browser) -> None:
    tips = page.script("return [...document.querySelectorAll('svg.memory .block')].map((block) => block.dataset.tip)")
    assert tips and all("aten_" not in tip.splitlines()[0] and "aten_" in tip.splitlines()[1] for tip in tips)
    assert "aten_" not in page.text("#memory .causes")


def test_every_layer_is_exact_and_nearly_all_are_compared_with_float(page: Browser) -> None:
    cells = (
        "return [...document.querySelectorAll(`#layer-table td[data-key=${arguments[0]}]`)].map((c) => c.textContent)"
    )
    assert set(page.script(cells, "lsb")) == {"0"}
    decibels = page.script(cells, "sqnr")
    assert sum(text.endswith(" dB") for text in decibels) >= 0.9 * len(decibels)


def test_advice_is_ranked_anew_by_a_click(page: Browser) -> None:
    values = "return [...document.querySelectorAll('.advice li')].map((li) => [li.dataset.elsewhere, li.dataset[arguments[0]]])"
    # "accuracy" is there for models that a change brings nearer to float.
    keys = page.script("return [...document.querySelectorAll('#rank button')].map((button) => button.dataset.key)")
    assert {"memory", "time"} <= set(keys)
    for key in (*keys[1:], keys[0]):
        page.click(f"#rank button[data-key={key}]")
        found = [(int(elsewhere), float(value)) for elsewhere, value in page.script(values, key)]
        assert found == sorted(found) and page.text("#rank button[aria-pressed=true]").lower() == key


def test_the_timeline_zooms_moves_and_tells(page: Browser) -> None:
    def span() -> int:
        return int(page.script("const d = document.querySelector('#lanes').dataset; return d.to - d.from"))

    page.click("#zoom-all")
    whole = span()
    page.click("#zoom-in")
    assert span() == pytest.approx(whole / 2, abs=2)
    page.point("#lanes", 40, -40)
    assert re.search(r"rows \d+ to \d+\n[\d,]+ cycles, from [\d,]+", page.text("#tip"))
    page.click("#zoom-all")
    assert span() == whole


def test_dark_and_light_differ_and_stay_readable(page: Browser) -> None:
    colours = []
    for dark in (False, True):
        page.dark(dark)
        colours.append(page.script("const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"))
    page.dark(False)
    for text, ground in colours:
        light, other = (sum(map(int, re.findall(r"\d+", value)[:3])) for value in (text, ground))
        assert abs(light - other) > 500  # of 765 between black and white
    assert colours[0] != colours[1]


def test_it_fits_a_phone_without_scrolling_sideways(page: Browser) -> None:
    page.devtools("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=True)
    try:
        assert page.script("return document.documentElement.scrollWidth") <= 420
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")


def test_the_console_stays_silent_and_nothing_is_fetched(page: Browser) -> None:
    assert page.log() == []
    assert page.script("return performance.getEntriesByType('resource').map((entry) => entry.name)") == []


@pytest.mark.parametrize("page", ["cifarnet"], indirect=True)
def test_the_readme_prints_what_the_report_shows(page: Browser) -> None:
    rows = page.script(
        "return [...document.querySelectorAll('#board tbody tr')].map((tr) => [...tr.cells].map((c) => c.textContent.trim()))"
    )
    readme = [re.split(r" {2,}", line.strip()) for line in (IMAGES.parents[1] / "README.md").read_text().splitlines()]
    assert len(rows) > 5 and [row for row in rows if row not in readme] == []


@pytest.fixture(scope="module")
def pair(window: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The page of one model compiled for two chips, open in the window."""
    folder = tmp_path_factory.mktemp("pair")
    reports = [folder / "first.json", folder / "second.json"]
    for file, target in zip(reports, ("imxrt700", "mcxn94x"), strict=True):
        file.write_text(to_json(on.compile(tiny.convnet(), target=target, name="convnet.tflite").report))
    page = folder / "pair.html"
    assert run(["report", *map(str, reports), "-o", str(page)]) == 0
    window.open(page)
    return window


def test_two_reports_stand_side_by_side(pair: Browser) -> None:
    headings = pair.script("return [...document.querySelectorAll('#figures th')].map((th) => th.textContent)")
    assert ["imxrt700" in headings[1], "mcxn94x" in headings[2]] == [True, True]
    assert {"good", "bad"} & set(
        pair.script("return [...document.querySelectorAll('#figures .delta')].flatMap((d) => [...d.classList])")
    )
    values = (
        "return [...document.querySelectorAll('#layer-table tbody tr')].map((r) => Number(r.cells[4].dataset.value))"
    )
    pair.click("#layer-table th[data-key=second] button")
    assert (found := pair.script(values)) == sorted(found, reverse=True) and len(found) > 1
    pair.devtools("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=True)
    try:
        assert pair.script("return document.documentElement.scrollWidth") <= 420
    finally:
        pair.devtools("Emulation.clearDeviceMetricsOverride")
    assert pair.log() == []


def test_many_models_for_many_chips_are_one_page(
    window: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("convnet.tflite").write_bytes(tiny.convnet())
    Path("resnet8.tflite").write_bytes(BOARD_NETWORKS["resnet8"]())
    words = ["sweep", "convnet.tflite", "resnet8.tflite", "--target", "all", "--workers", "1", "-o", "swept"]
    assert run(words) == 0
    window.open(tmp_path / "swept" / "index.html")
    texts = window.script("return [...document.querySelectorAll('svg text')].map((text) => text.textContent)")
    assert {"0", "convnet.tflite", "resnet8.tflite"} <= set(texts) and "-0" not in texts
    assert window.script("return document.querySelectorAll('svg .dot').length") == 2 * len(targets.chips())
    assert window.log() == []


def test_the_documentations_pictures_are_the_ones_taken_here() -> None:
    assert {file.name for file in IMAGES.glob("report-*.png")} == set(PICTURES)
