"""Figures that pages show of the examples are what the examples print."""

from __future__ import annotations

import re

import pytest

from examples import demo, imxrt700cm, qat_cifar10
from tests.docs.blocks import ROOT, first_missing

QUICK = "mixed"
PARTS = re.compile(r"[│┃|]")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in PARTS.split(line)[1:-1]]


def rows(text: str, columns: int) -> dict[str, list[str]]:
    """Return the first cells of every table's rows by their name, without what a page says of it after a colon."""
    lines = (cells(line) for line in text.splitlines() if PARTS.match(line.strip()))
    return {line[0].partition(":")[0]: line[1 : columns + 1] for line in lines if len(line) > columns}


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize(
    "network", [name if name == QUICK else pytest.param(name, marks=pytest.mark.full) for name in imxrt700cm.CASES]
)
def test_the_page_of_recipes_shows_the_engines_and_times(network: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert imxrt700cm.main([network]) == 0
    shown = rows(page("docs/recipes.md"), 6)
    assert set(imxrt700cm.CASES) <= set(shown)
    assert rows(capsys.readouterr().out, 6)[network] == shown[network]


@pytest.mark.full
def test_the_readme_shows_what_the_demo_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert demo.main() == 0
    (shown,) = re.findall(r"^```text\n(On the board\n.*?)```", page("README.md"), re.MULTILINE | re.DOTALL)
    assert first_missing(shown.splitlines(), capsys.readouterr().out) is None


@pytest.mark.full
def test_the_page_of_training_shows_what_the_example_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert qat_cifar10.main([]) == 0
    printed, shown = (
        [line[1] for line in map(cells, text.splitlines()) if len(line) > 1 and line[1].endswith("%")]
        for text in (capsys.readouterr().out, page("docs/qat.md"))
    )
    assert len(shown) == 4 and printed == shown
