"""A real browser without a Python package: Debian's chromium, driven over the WebDriver protocol of chromium-driver."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which WebDriver hands out elements
DRAW_SECONDS = 60  # in which a page draws what was asked for
START_SECONDS = 300  # a loaded machine takes its time to start a browser
NEEDED = "needs a browser: apt-get install chromium chromium-driver"


def find() -> tuple[str, str]:
    """Paths of the driver and the browser; where one is missing the test skips, or fails in CI, and names the packages."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if driver is None or browser is None:
        # Set-up installs them when this is set; then their absence is a fault.
        pytest.fail(NEEDED) if os.environ.get("OPENNEUTRON_APT") == "1" else pytest.skip(NEEDED)
    return driver, browser


class Browser:
    """One window. Elements are found by CSS selector; the pointer moves as a user's would."""

    def __init__(self, base: str, session: str) -> None:
        self._base, self._session = base, session

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return _request(self._base, method, f"/session/{self._session}{path}", body)

    def open(self, path: Path) -> None:
        self.visit(path.resolve().as_uri())

    def visit(self, address: str) -> None:
        self.call("POST", "/url", {"url": address})

    def wait(self, condition: str, *arguments: Any, seconds: float = START_SECONDS) -> Any:
        """What a script returns once that is true; until then it is asked again."""
        until = time.monotonic() + seconds
        while not (found := self.script(condition, *arguments)):
            assert time.monotonic() < until, f"never: {condition}"
            time.sleep(0.05)
        return found

    def choose(self, selector: str, *files: Path) -> None:
        """Choose files in a file input, as the system's dialog would."""
        place = self.element(selector)[ELEMENT]
        self.call("POST", f"/element/{place}/value", {"text": "\n".join(str(file.resolve()) for file in files)})

    def script(self, code: str, *arguments: Any) -> Any:
        return self.call("POST", "/execute/sync", {"script": code, "args": list(arguments)})

    def element(self, selector: str) -> dict[str, str]:
        find = {"using": "css selector", "value": selector}
        found: dict[str, str] = _once_drawn(lambda: self.call("POST", "/element", find))
        return found

    def text(self, selector: str) -> str:
        return str(_once_drawn(lambda: self.call("GET", f"/element/{self.element(selector)[ELEMENT]}/text")))

    def shows(self, selector: str, words: str) -> bool:
        """Return whether an element shows these words, once the page has drawn them."""
        until = time.monotonic() + DRAW_SECONDS
        while words not in self.text(selector):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def show(self, selector: str) -> None:
        """Bring an element to the middle of the window at once, whatever the page's style says about scrolling."""
        self.element(selector)
        code = """document.querySelector(arguments[0]).scrollIntoView({block: 'center', behavior: 'instant'});
            return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))"""
        self.script(code, selector)  # a frame later the page knows that it was scrolled, which hides tips

    def click(self, selector: str) -> None:

        def click() -> None:
            self.show(selector)
            self.call("POST", f"/element/{self.element(selector)[ELEMENT]}/click", {})

        _once_drawn(click)

    def point(self, selector: str, x: int = 0, y: int = 0) -> None:
        """Move the pointer to a place relative to the middle of an element, scrolling it into view first."""
        self.show(selector)
        code = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]"""
        left, top = (round(place) for place in self.script(code, selector))
        # In the window, not from the element: for that some drivers scroll once more, and scrolling hides tips.
        move = {"type": "pointerMove", "duration": 0, "origin": "viewport"}
        actions = [{**move, "x": left + x - 2, "y": top + y}, {**move, "x": left + x, "y": top + y}]
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def dark(self, wanted: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self) -> list[str]:
        """What the console said, requests that failed included."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def screenshot(self, path: Path, selector: str = "") -> None:
        """The window's first sight, or one element with a little air around it, as PNG."""
        # Over DevTools: WebDriver's own gives up after ten seconds, which a loaded machine may need.
        code = """if (!arguments[0]) return {x: 0, y: 0, width: innerWidth, height: innerHeight};
            const box = document.querySelector(arguments[0]).getBoundingClientRect();
            return {x: box.x - 16 + scrollX, y: box.y - 16 + scrollY, width: box.width + 32, height: box.height + 32}"""
        clip = {**self.script(code, selector), "scale": 1}
        made = self.devtools("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))


@contextlib.contextmanager
def browser(width: int = 1360, height: int = 1000) -> Iterator[Browser]:
    """A headless browser for the block."""
    driver, binary = find()
    process = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, text=True
    )
    try:
        base = f"http://127.0.0.1:{_port(process)}"
        _wait(base)
        # Containers have no sandbox and little /dev/shm; neither matters for a page of our own.
        switches = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                    "--force-device-scale-factor=1", "--no-first-run", "--disable-background-networking",
                    "--disable-component-update", "--disable-sync", "--disable-quic",
                    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",  # a camera and a microphone
                    f"--window-size={width},{height}"]  # fmt: skip
        limits = dict.fromkeys(("script", "pageLoad"), 1000 * START_SECONDS)
        wanted = {"goog:chromeOptions": {"binary": binary, "args": switches}, "goog:loggingPrefs": {"browser": "ALL"},
                  "timeouts": limits}  # fmt: skip
        made = _request(base, "POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        window = Browser(base, made["sessionId"])
        try:
            yield window
        finally:
            window.call("DELETE", "")
    finally:
        process.terminate()
        process.communicate(timeout=START_SECONDS)


def _port(process: subprocess.Popen[str]) -> int:
    """Return the free port that the driver took."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(r"started successfully on port (\d+)", line):
            return int(found[1])
    raise AssertionError(f"the driver does not start: {said}")


# What the driver says of an element that the page draws just now.
_NOT_DRAWN = ("no such element", "stale element reference", "element click intercepted", "element not interactable")


def _once_drawn(act: Callable[[], T]) -> T:
    """Return what the action returns once the page has drawn what it needs."""
    until = time.monotonic() + DRAW_SECONDS
    while True:
        try:
            return act()
        except AssertionError as error:
            if not str(error).startswith(_NOT_DRAWN) or time.monotonic() > until:
                raise
        time.sleep(0.05)


def _wait(base: str) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            if _request(base, "GET", "/status")["ready"]:
                return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > until:
                raise
        time.sleep(0.1)


def _request(base: str, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"}, method=method)
    # Straight to the driver: a proxy from the environment has no business here.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=START_SECONDS) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        detail = json.load(error)["value"]
        raise AssertionError(f"{detail['error']}: {detail['message'].splitlines()[0]}") from None
