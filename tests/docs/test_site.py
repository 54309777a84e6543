"""The documentation site builds strictly, and the built pages ask nothing of the network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT


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
