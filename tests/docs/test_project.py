"""The files around the code agree with it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from openneutron import __version__
from tests.docs.blocks import ROOT

TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_citation_names_version_and_licence() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    assert citation["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text("utf-8").startswith("BSD 3-Clause License")


def test_changelog_begins_with_this_version() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert first is not None and first.group(1) == __version__


@pytest.mark.parametrize("file", [t for t in TEMPLATES if t.stem != "config"], ids=lambda file: file.stem)
def test_issue_templates_are_forms(file: Any) -> None:
    form = yaml.safe_load(file.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    identifiers = [item["id"] for item in form["body"]]
    assert len(identifiers) == len(set(identifiers))


def test_make_help_lists_every_task() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    tasks = set(re.search(r"^\.PHONY: (.+)$", text, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
    explained = set(re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE))
    assert tasks == explained


def test_links_of_the_front_pages_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text("utf-8")):
            assert link.startswith("http") or (ROOT / link).exists(), f"{name}: {link}"
