"""Accessibility faults of a page in the browser, found by axe-core."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.report.html.browser import Browser

ROOT = Path(__file__).parents[2]
SERIOUS = {"serious", "critical"}


def archive(name: str) -> Path:
    """The folder of an archive that set-up fetched; without it the test skips, or fails in CI."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import archives
    finally:
        sys.path.pop(0)
    folder: Path = archives.FOLDER / name
    if not (folder / ".sha256").is_file():
        needed = f"needs {name}: make setup fetches it where npm and the network are"
        pytest.fail(needed) if os.environ.get("OPENNEUTRON_APT") == "1" else pytest.skip(needed)
    return folder


def faults(window: Browser) -> list[str]:
    """Rule and place of each serious fault of the page as it is now."""
    window.devtools("Runtime.evaluate", expression=(archive("axe-core") / "axe.min.js").read_text("utf-8"))
    found = window.script("return axe.run(document, {iframes: false})")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
        if one["impact"] in SERIOUS
    ]
