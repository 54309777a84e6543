"""The documentation site builds strictly, and the built pages ask nothing of the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.report.html.browser import browser, find


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        made = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert made.is_file(), f"{page} was not built"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"""<(?:script|link|img|iframe)[^>]+(?:src|href)=["']?(https?:)?//""")
    for page in site.rglob("*.html"):
        found = loads.search(re.sub(r'<link rel="canonical"[^>]*>', "", page.read_text("utf-8")))
        assert found is None, f"{page.name}: {found.group(0)}"


# Types a word until the search has answered, for twenty seconds at most.
SEARCH = """const [word, done] = arguments, box = document.querySelector("[data-md-component=search-query]");
const links = () => [...document.querySelectorAll(".md-search-result__link")].map((one) => one.getAttribute("href"));
let tries = 0;
const timer = setInterval(() => {
  box.focus(); box.value = word;
  for (const kind of ["keyup", "input"]) box.dispatchEvent(new Event(kind, {bubbles: true}));
  if (links().length || ++tries > 1000) { clearInterval(timer); done(links()); }
}, 200)"""


def test_search_works_from_disk(site: Path) -> None:
    """A page opened as a file finds what is searched for, with nothing but files beside it."""
    find()
    with browser() as window:
        window.open(site / "index.html")
        if folder := os.environ.get("OPENNEUTRON_SCREENSHOTS"):
            window.screenshot(Path(folder) / "docs-home.png")
        found = window.call("POST", "/execute/async", {"script": SEARCH, "args": ["percentile"]})
        assert any("quantization.html" in link for link in found), window.log()
