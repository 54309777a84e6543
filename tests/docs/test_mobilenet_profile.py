"""The profile of MobileNetV2 that the profiling page shows is what the commands above it print."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Session, blocks_of

PAGE = "docs/profiling.md"
FIRST = "$ openneutron compile mobilenet_v2"


@pytest.mark.full
def test_the_page_shows_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block in `text`, because compiling the model takes too long for every run of the pages."""
    monkeypatch.chdir(tmp_path)
    (block,) = [b for b in blocks_of((ROOT / PAGE).read_text("utf-8")) if b.text.startswith(FIRST)]
    Session(PAGE).run(dataclasses.replace(block, language="console"))
