"""The page in a real browser: drop a file, move a budget, press a change, run, download; no accessibility fault is serious.

With OPENNEUTRON_SCREENSHOTS=folder the documentation's pictures are written there: `make screenshots`.
"""

from __future__ import annotations

import base64
import os
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest

import openneutron as on
from benchmarks.networks import Layers
from openneutron.analyze.fits import Limits, fits
from openneutron.studio.api import judged_targets
from openneutron.studio.server import Studio
from tests import tiny
from tests.report.html.browser import Browser, browser, find
from tests.studio.axe import faults

DROP = """const bytes = Uint8Array.from(atob(arguments[0]), (one) => one.charCodeAt(0));
    const held = new DataTransfer();
    held.items.add(new File([bytes], arguments[1]));
    document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: held, bubbles: true, cancelable: true}))"""
MOVE = """const input = document.getElementById(arguments[0]);
    input.value = arguments[1];
    input.dispatchEvent(new Event('input'))"""
PICTURES = {"studio-fit.png": "fit", "studio-report.png": "report"}
IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    find()
    with browser(1280, 900) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(studio: Studio, window: Browser) -> Browser:
    """The studio with a dropped model on its bench."""
    window.visit(studio.address)
    window.wait("return document.body.dataset.ready")
    assert faults(window) == []
    window.script(DROP, base64.b64encode(tiny.convnet()).decode(), "convnet.tflite")
    window.wait("return document.querySelector('.fit-table tbody tr')")
    return window


def show_compiled(page: Browser, tab: str) -> None:
    """Open a tab of the model compiled for mcxn94x: tests run in any order, and on several processes."""
    page.click("#tab-fit")
    page.wait("return document.querySelector('[data-report=mcxn94x]')")
    page.click("[data-report=mcxn94x]")
    page.wait("return document.querySelector('.report-frame')")
    page.click(f"#tab-{tab}")


def verdicts(window: Browser) -> dict[tuple[str, str], tuple[bool, str]]:
    rows = window.script(
        """return [...document.querySelectorAll('.fit-table tbody tr')].map((row) => [row.dataset.chip, row.dataset.schedule,
        row.classList.contains('fits'), row.querySelector('.missing')?.textContent ?? ''])"""
    )
    return {(chip, schedule): (fits, short) for chip, schedule, fits, short in rows}


def test_budgets_judge_anew_at_once_and_as_the_command_does(page: Browser) -> None:
    assert all(fit for fit, _ in verdicts(page).values())
    page.script(MOVE, "budget-sram", 0)
    page.script(MOVE, "budget-milliseconds", 0)
    limits = Limits(sram_bytes=8 * 1024, milliseconds=0.01)
    wanted = fits([tiny.convnet()], judged_targets(), limits, try_changes=False)
    assert verdicts(page) == {(row.target, row.schedule): (row.fits, row.short) for row in wanted}
    assert not all(row.fits for row in wanted)
    assert faults(page) == []
    for name in ("sram", "milliseconds"):
        page.script(MOVE, f"budget-{name}", 1000)
    assert all(fit for fit, _ in verdicts(page).values())


def test_a_change_is_compiled_and_compared_by_a_button(page: Browser) -> None:
    show_compiled(page, "report")
    page.click("#find-changes")
    page.wait("return document.querySelector('[data-change]')")
    assert faults(page) == []
    page.click("[data-change]")
    page.wait("return document.querySelector('.report-frame')?.title.startsWith('Two reports')")
    assert page.script("return document.querySelectorAll('.variant').length") == 2
    frame = page.element(".report-frame")
    page.call("POST", "/frame", {"id": frame})
    try:
        assert page.wait("return document.querySelector('#figures')?.textContent").count("ms") >= 2
        # Its scripts run, and it has no way to the page around it.
        page.click("#layer-table th[data-key=second] button")
        assert page.script("return document.querySelector('#layer-table th[aria-sort]') !== null")
        assert (
            page.script("try { return parent.document.title } catch (error) { return error.name }") == "SecurityError"
        )
    finally:
        page.call("POST", "/frame/parent", {})


def test_a_picture_runs_and_is_exact(page: Browser, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 30), (200, 30, 90)).save(tmp_path / "red.png")
    show_compiled(page, "run")
    page.wait("return document.querySelector('#run')")
    page.choose(".input input[type=file]", tmp_path / "red.png")
    page.wait("return document.querySelector('#run-source').textContent === 'red.png'")
    page.click("#run")
    assert page.wait("return document.querySelector('.tile-card.good .figure')?.textContent") == "0 LSB"
    assert page.script("return document.querySelectorAll('.output').length") == 1
    assert faults(page) == []


def test_a_frame_of_the_camera_runs_and_is_exact(page: Browser) -> None:
    show_compiled(page, "run")
    page.wait("return document.querySelector('#run')")
    press(page, "Camera")
    page.wait("return document.querySelector('#run-source').textContent === 'a camera frame'")
    assert not page.script("return document.querySelector('canvas.preview').hidden")
    page.click("#run")
    assert page.wait("return document.querySelector('.tile-card.good .figure')?.textContent") == "0 LSB"


def test_sound_of_the_microphone_and_of_a_file_runs(page: Browser, tmp_path: Path) -> None:
    net = Layers((1, 1600))
    page.script(DROP, base64.b64encode(net.finish(net.fully_connected(net.input, 4))).decode(), "sound.tflite")
    page.wait("return document.querySelector('#title').textContent === 'sound.tflite'")
    page.wait("return document.querySelector('[data-report=mcxn94x]')")
    page.click("[data-report=mcxn94x]")
    page.wait("return document.querySelectorAll('.variant').length === 1")  # the other model has two
    page.click("#tab-run")
    page.wait("return document.querySelector('#run')")
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 800, "NONE", ""))
        file.writeframes(b"".join(int(9000 * (at % 20 < 10)).to_bytes(2, "little") for at in range(800)))
    page.choose(".input input[type=file]", tmp_path / "tone.wav")
    for source in ("tone.wav", "the microphone"):
        if source == "the microphone":
            press(page, "Microphone")
        page.wait("return document.querySelector('#run-source').textContent === arguments[0]", source)
        page.click("#run")
        assert page.wait("return document.querySelector('.tile-card.good .figure')?.textContent") == "0 LSB"
        page.script("document.querySelector('#run-result').replaceChildren()")
    page.click("[aria-label='Remove sound.tflite']")
    page.wait("return document.querySelector('#title').textContent === 'convnet.tflite'")


def press(page: Browser, label: str) -> None:
    """Click the button of an input that has this label."""
    page.script(
        "[...document.querySelectorAll('.input button')].find((one) => one.textContent === arguments[0]).click()", label
    )


def test_the_compiled_file_is_downloaded(page: Browser, studio: Studio, tmp_path: Path) -> None:
    page.devtools("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    show_compiled(page, "files")
    name = page.wait("return document.querySelector('.files [data-file$=tflite]')?.dataset.file")
    assert faults(page) == []
    page.click(f'[data-file="{name}"]')
    file, until = tmp_path / name, time.monotonic() + 300
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    chosen = studio.session.variant(page.script("return document.querySelector('#files-variant').value"))
    assert file.read_bytes() == on.compile(tiny.convnet(), name="convnet.tflite", **chosen.options).tflite


def test_a_project_is_made_for_a_board(page: Browser) -> None:
    show_compiled(page, "files")
    page.wait("return document.querySelector('#project-board')")
    page.script("document.querySelector('#project-board').value = 'mps2-an505'")
    page.click("#make-project")
    assert "RAM" in page.wait("return document.querySelector('#project-sizes')?.textContent")
    assert page.script("return document.querySelector('.files [data-file$=\"_project.zip\"]') !== null")
    assert faults(page) == []


def test_a_reload_finds_everything_again_by_keyboard_too(page: Browser) -> None:
    show_compiled(page, "files")
    page.call("POST", "/refresh", {})
    page.wait("return document.body.dataset.ready")
    assert page.shows("#models .now strong", "convnet.tflite")
    page.wait("return !document.querySelector('#panel-files').hidden")
    page.script("document.querySelector('#tab-files').focus()")
    # The right arrow goes round to the first tab.
    keys = [{"type": kind, "value": "\ue014"} for kind in ("keyDown", "keyUp")]
    page.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})
    page.wait("return document.activeElement.id === 'tab-fit' && document.querySelector('.fit-table')")


def test_an_error_is_a_sentence_and_goes_away(page: Browser) -> None:
    page.script(DROP, base64.b64encode(b"nothing").decode(), "model.h5")
    assert "model.h5: files of this name are not taken" in page.wait(
        "return document.querySelector('#errors').textContent"
    )
    assert faults(page) == []
    page.click("#errors button")
    assert page.script("return document.querySelector('#errors').children.length") == 0


def test_dark_phone_and_a_silent_console(page: Browser) -> None:
    page.dark(True)
    page.devtools("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=True)
    try:
        for tab in ("fit", "run", "files", "report"):
            page.click(f"#tab-{tab}")
            page.wait("return document.querySelector(`#panel-${arguments[0]}`).children.length > 0", tab)
            assert page.script("return document.documentElement.scrollWidth") <= 420, tab
            assert faults(page) == []
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")
        page.dark(False)
    assert page.log() == []


@pytest.mark.full
def test_the_documentations_pictures_are_taken_here(studio: Studio, window: Browser) -> None:
    """CifarNet of the zoo, judged and compiled."""
    window.visit(studio.address)
    window.wait("return document.body.dataset.ready")
    window.script(
        "const z = document.querySelector('#zoo'); z.value = 'cifarnet'; z.dispatchEvent(new Event('change'))"
    )
    window.wait(
        "return document.querySelector('#title').textContent === 'cifarnet' && document.querySelector('.fit-table')"
    )
    folder = os.environ.get("OPENNEUTRON_SCREENSHOTS")
    if folder:
        window.screenshot(Path(folder) / "studio-fit.png")
    window.click("[data-report=imxrt700]")
    window.wait("return document.querySelector('.report-frame')")
    time.sleep(1)  # the frame has no event that this page hears once it is drawn
    if folder:
        window.screenshot(Path(folder) / "studio-report.png")
    assert {file.name for file in IMAGES.glob("studio-*.png")} <= set(PICTURES)
