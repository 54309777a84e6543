"""Every code block of the documentation and the README runs, and generated pages are what their sources say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import generate
from tests.docs.blocks import ROOT, Session, blocks_of

GENERATED = {*(ROOT / name for name in ("docs/format.md",)), *(ROOT / "docs" / "reference").glob("*.md")}
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")} - GENERATED)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session(str(page.relative_to(ROOT)))
    for block in blocks_of(page.read_text("utf-8")):
        session.run(block)


@pytest.mark.parametrize("name", generate.PAGES)
def test_generated_pages_are_current(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == generate.PAGES[name](), f"{name} is old: run `make generate`"


def test_every_environment_variable_is_documented() -> None:
    """Variables that C or Python reads, by the names they are looked up with."""
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("scripts/*.py"), *ROOT.glob("runtime/**/*.[ch]*")]
    pattern = re.compile(r"""(?:environ\.get\(|environ\[|getenv\(|setting\(|_VARIABLE = )"(OPENNEUTRON_[A-Z_]+)\"""")
    found = {name for file in files for name in pattern.findall(file.read_text("utf-8"))}
    assert found == set(generate.VARIABLES)


# A citation: "docs/numerics.md, Fully connected"; the heading ends where the sentence, bracket or clause does.
_CITATION = re.compile(r"docs/([a-z-]+\.md)(?:, ([A-Z][\w ,-]*?\w))?(?=[;:.)]|$| \*/)", re.MULTILINE)


def test_sources_cite_pages_and_headings_that_exist() -> None:
    folders = ("src", "runtime", "tests", "benchmarks", "examples")
    suffixes = {".py", ".c", ".h", ".cpp", ".toml"}
    files = [
        f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in suffixes and f != Path(__file__)
    ]
    wrong, seen = [], 0
    for file in files:
        for page, heading in _CITATION.findall(file.read_text("utf-8")):
            seen += 1
            path = ROOT / "docs" / page
            headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE) if path.exists() else None
            if headings is None or (heading and heading not in headings):
                wrong.append(f"{file.relative_to(ROOT)}: docs/{page}, {heading}")
    assert seen > 40
    assert not wrong, "\n".join(wrong)


def test_every_example_is_described() -> None:
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    for entry in (ROOT / "examples").iterdir():
        assert entry.name.startswith("_") or f"`examples/{entry.name}`" in page, (
            f"{entry.name} is not in docs/examples.md"
        )


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)) == pages
