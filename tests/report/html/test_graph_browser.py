"""The graph of a deep network in a real browser: first view, folding, search, zoom, small map, keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openneutron.report.html import page
from openneutron.report.model import Kernel, NodeVerdict, Operator, Report
from tests.report.html.browser import Browser, browser, find
from tests.studio.axe import faults

LAYERS, PARTS = 12, ("query", "key", "value", "out", "up", "down")


def deep() -> Report:
    """An encoder of twelve layers, whose mask is computed on the CPU and read by all of them."""
    nodes = [NodeVerdict("mask", "aten.rsub.Scalar", False, "it works on int64", source="model.py:7")]
    nodes += [NodeVerdict(f"steps_{at}", "aten.arange.default", False, constant=True) for at in range(LAYERS)]
    last: tuple[str, ...] = ()
    for layer in range(LAYERS):
        for part in PARTS:
            name = f"aten_linear_default_{len(nodes)}"
            inputs = (*last, "mask", f"steps_{layer}") if part == "out" else last
            nodes.append(
                NodeVerdict(name, "aten.linear.default", True, debug_handle=len(nodes), partition=0, inputs=inputs,
                            module=f"encoder.layer.{layer}.{part}")
            )  # fmt: skip
            last = (name,)
    linear = [node for node in nodes if node.delegated]
    operators = [
        Operator(at, "FULLY_CONNECTED", node.name, True, graph=0, debug_handles=(node.debug_handle,))
        for at, node in enumerate(linear)
    ]
    kernels = [
        Kernel(at, 0, "dense", node.name, (at,), (1, 16, 64), 100, 1, 10 + at, 10 + at, 0, 0, 64, module=node.module)
        for at, node in enumerate(linear)
    ]
    return Report("imxrt700", source="deep", nodes=tuple(nodes), operators=tuple(operators), kernels=tuple(kernels))


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    find()
    with browser(1280, 1000) as opened:
        yield opened


@pytest.fixture
def graph(window: Browser, tmp_path: Path) -> Browser:
    file = tmp_path / "deep.html"
    file.write_text(page(deep()), "utf-8")
    window.open(file)
    window.wait("return document.querySelector('#graph-pane').dataset.scale")
    window.show("#graph-pane")
    return window


SEEN = """const pane = document.querySelector('#graph-pane').getBoundingClientRect();
    return [...document.querySelectorAll('.box')].filter((one) => {
      const box = one.getBoundingClientRect();
      return box.top >= pane.top && box.bottom <= pane.bottom && box.left >= pane.left && box.right <= pane.right;
    }).map((one) => one.textContent)"""


def seen(window: Browser) -> list[str]:
    """Labels of the boxes that are wholly in sight."""
    found: list[str] = window.script(SEEN)
    return found


def count(window: Browser) -> int:
    return int(window.script("return document.querySelectorAll('.box').length"))


def wait_for_boxes(window: Browser, wanted: int) -> None:
    window.wait("return document.querySelectorAll('.box').length === arguments[0]", wanted)


def wait_for_text(window: Browser, selector: str, wanted: str) -> None:
    window.wait("return document.querySelector(arguments[0])?.textContent === arguments[1]", selector, wanted)


def double_click(window: Browser, selector: str) -> None:
    """Click twice, and again where a busy machine took too long between the two for a browser to join them."""
    watch = """window.doubled = false;
        document.addEventListener('dblclick', () => { window.doubled = true }, {capture: true, once: true})"""
    window.script(watch)
    for _ in range(20):
        move = {"type": "pointerMove", "duration": 0, "origin": window.element(selector), "x": 0, "y": 0}
        click = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        window.call(
            "POST", "/actions", {"actions": [{"type": "pointer", "id": "m", "actions": [move, *click, *click]}]}
        )
        if window.script("return window.doubled"):
            return
    raise AssertionError("two clicks are never a double click")


def scale(window: Browser) -> float:
    return float(window.script("return document.querySelector('#graph-pane').dataset.scale"))


def key(window: Browser, value: str) -> None:
    actions = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
    window.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})


def drag(window: Browser, selector: str, x: int, y: int) -> None:
    box: dict[str, Any] = window.script("return document.querySelector(arguments[0]).getBoundingClientRect()", selector)
    left, top = round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)
    move = {"type": "pointerMove", "duration": 0, "origin": "viewport"}
    steps = [{**move, "x": left, "y": top}, {"type": "pointerDown", "button": 0}, {**move, "x": left + x, "y": top + y},
             {"type": "pointerUp", "button": 0}]  # fmt: skip
    window.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})


def test_the_first_view_shows_folded_layers_that_can_be_read(graph: Browser) -> None:
    assert count(graph) == 1 + LAYERS and scale(graph) >= 0.6
    labels = seen(graph)
    assert len(labels) >= 6 and labels[0].startswith("rsub") and not any("arange" in label for label in labels)
    assert "12 nodes that compute constants are not drawn" in graph.text("#graph .lead")
    assert graph.text("#details .badge") == "CPU" and "model.py:7" in graph.text("#details")
    assert faults(graph) == [] and graph.log() == []


def test_a_double_click_unfolds_a_module_and_its_button_folds_it(graph: Browser) -> None:
    double_click(graph, ".box.module")
    wait_for_boxes(graph, LAYERS + len(PARTS))
    # The details are drawn anew by every click of the two.
    wait_for_text(graph, "#details h3", "encoder.layer.0.query")
    graph.click("#details .folds button")
    wait_for_boxes(graph, 1 + LAYERS)
    assert graph.shows("#details", "holds")
    graph.click("#graph-unfold")
    wait_for_boxes(graph, 1 + LAYERS * len(PARTS))
    graph.click("#graph-fold")
    wait_for_boxes(graph, 1 + LAYERS)
    assert faults(graph) == []


def test_search_counts_dims_and_opens_what_is_folded(graph: Browser) -> None:
    graph.click("#graph-search")
    for letter in "layer.7.up":
        key(graph, letter)
    wait_for_text(graph, "#graph-count", f"1 of {LAYERS * len(PARTS) + 1}")
    assert graph.script("return document.querySelectorAll('.box.dim').length") == LAYERS
    key(graph, "\ue007")
    wait_for_text(graph, "#graph-count", "1 of 1")
    wait_for_text(graph, "#details h3", "encoder.layer.7.up")
    graph.wait(f"{SEEN}.some((one) => one.includes('encoder.layer.7.up'))")


def test_zoom_fit_drag_and_the_small_map(graph: Browser) -> None:
    graph.click("#graph-unfold")
    graph.click("#graph-fit")
    assert scale(graph) < 0.2 and len(seen(graph)) == count(graph)
    assert graph.script("return document.querySelector('#graph-map').hasAttribute('hidden')")
    for _ in range(6):
        graph.click("#graph-in")
    assert scale(graph) > 0.6 and not graph.script("return document.querySelector('#graph-map').hasAttribute('hidden')")
    graph.show("#graph-pane")
    drag(graph, "#graph-map", 0, -80)
    top = seen(graph)
    drag(graph, "#graph-map", 0, 80)
    bottom = seen(graph)
    assert top and bottom and not set(top) & set(bottom)
    drag(graph, "#graph-pane", 0, 200)
    assert seen(graph) != bottom


def test_the_keyboard_moves_zooms_and_unfolds(graph: Browser) -> None:
    graph.script("document.querySelector('#graph-pane').focus({preventScroll: true})")
    before = scale(graph)
    key(graph, "+")
    assert scale(graph) > before
    key(graph, "0")
    fitted = seen(graph)
    assert len(fitted) == count(graph)
    key(graph, "\ue015")  # down
    key(graph, "\ue004")  # tab: to the first box, which comes into sight
    assert graph.script("return document.activeElement.dataset.box") == "0"
    graph.script("document.querySelector('.box.module').focus({preventScroll: true})")
    key(graph, "\ue007")
    wait_for_boxes(graph, LAYERS + len(PARTS))


def test_it_works_on_a_phone(graph: Browser) -> None:
    graph.devtools("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=True)
    try:
        graph.call("POST", "/refresh", {})
        graph.wait("return document.querySelector('#graph-pane').dataset.scale")
        assert len(seen(graph)) >= 4 and graph.script("return document.documentElement.scrollWidth") <= 420
    finally:
        graph.devtools("Emulation.clearDeviceMetricsOverride")
