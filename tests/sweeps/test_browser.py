"""The page of a sweep in a real browser: dots, fronts, axes, filters, and the way to a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openneutron
from openneutron.sweeps.results import Sweep
from tests import tiny
from tests.report.html.browser import Browser, browser, find


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Two networks × two chips × two budgets; one network has data, and one budget is too small for anything."""
    place = tmp_path_factory.mktemp("sweep")
    for make in (tiny.convnet, tiny.sandwich):
        (place / f"{make.__name__}.tflite").write_bytes(make())
    rng = np.random.default_rng(0)
    np.savez(place / "d.npz", x=rng.uniform(-1, 1, (12, 8, 8, 3)).astype(np.float32), y=rng.integers(0, 5, 12))
    models = [
        {"source": place / "convnet.tflite", "data": place / "d.npz"},
        {"source": place / "sandwich.tflite"},
    ]
    return openneutron.sweep(models, folder=place / "out", workers=1, target=["imxrt700", "mcxn94x"], fit=["none", 10])


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    find()
    with browser() as opened:
        yield opened


@pytest.fixture
def page(window: Browser, swept: Sweep) -> Browser:
    window.open(swept.folder / "index.html")
    return window


def _choose(page: Browser, name: str, value: str) -> None:
    code = """const box = [...document.querySelectorAll('select')].find((one) => one.dataset.name === arguments[0]);
        box.value = arguments[1]; box.dispatchEvent(new Event('change')); return box.value"""
    assert page.script(code, name, value) == value


def _count(page: Browser, selector: str) -> Any:
    return page.script("return document.querySelectorAll(arguments[0]).length", selector)


def _good(swept: Sweep, **wanted: object) -> list[dict[str, Any]]:
    rows = [row for row in swept if row["status"] == "ok"]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def test_every_variant_is_a_dot_and_each_network_has_its_front(page: Browser, swept: Sweep) -> None:
    _choose(page, "x axis", "stock_arena_bytes")
    _choose(page, "y axis", "stock_ms")
    good = _good(swept)
    assert 0 < len(good) < len(swept) == 8
    assert _count(page, "a.dot") == len(good) == _count(page, "line.span")
    assert _count(page, "polyline.front") == 2
    assert _count(page, "a.dot.best") == len(swept.pareto("stock_arena_bytes", "stock_ms"))
    _choose(page, "Pareto front", "all")
    assert _count(page, "polyline.front") == 1
    assert _count(page, "a.dot.best") == len(swept.pareto("stock_arena_bytes", "stock_ms", by=""))
    assert f"of {len(swept)} variants, {len(good)} with these figures" in page.text("#count")


def test_axes_can_be_chosen_and_accuracy_is_one_where_it_is_known(page: Browser, swept: Sweep) -> None:
    known = [row for row in _good(swept) if row["accuracy"] is not None]
    assert _count(page, "a.dot") == len(known) == 2 and "accuracy" in page.text("#plot")
    assert _count(page, "line.span") == 2  # Wilson's interval
    _choose(page, "y axis", "macs")
    assert _count(page, "a.dot") == len(_good(swept)) and _count(page, "line.span") == 0


def test_filters_by_chip_and_by_option(page: Browser, swept: Sweep) -> None:
    _choose(page, "y axis", "stock_ms")
    _choose(page, "target", "mcxn94x")
    assert _count(page, "a.dot") == len(_good(swept, target="mcxn94x"))
    _choose(page, "fit_bytes", "none")
    assert _count(page, "a.dot") == len(_good(swept, target="mcxn94x", fit_bytes=None)) == 2
    _choose(page, "status", "failed")
    assert _count(page, "a.dot") == 0 and "No variant has both figures" in page.text("#plot")


def test_a_click_on_a_dot_opens_its_report(page: Browser, swept: Sweep) -> None:
    links = page.script("return [...document.querySelectorAll('a.dot')].map((dot) => dot.getAttribute('href'))")
    assert set(links) == {row["report"] for row in _good(swept) if row["accuracy"] is not None}
    page.click("a.dot:last-of-type circle")  # the topmost where dots lie on each other
    deadline = time.monotonic() + 300
    while "/reports/" not in (address := page.script("return location.href")):
        assert time.monotonic() < deadline, address
        time.sleep(0.05)
    assert Path(address.removeprefix("file://")).is_file()
    assert not [line for line in page.log() if "favicon" not in line]
