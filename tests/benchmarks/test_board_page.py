"""The rows of docs/board.md are what its script makes of the reference networks today."""

from __future__ import annotations

import pytest

from benchmarks import board_page


@pytest.mark.parametrize("name", board_page.REFERENCE)
def test_the_page_has_todays_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_page, "REFERENCE", (name,))
    lines = board_page.PAGE.read_text("utf-8").splitlines()
    rows = list(board_page.reference_rows())
    assert len(rows) == len(board_page.targets.chips())
    assert [row for row in rows if row not in lines] == []


QUICK = "autoencoder"
ZOO = sorted(
    {line.split("|")[1].strip() for line in board_page.table("zoo").splitlines() if line.startswith("| ")} - {"model"}
)


@pytest.mark.parametrize("name", [one if one == QUICK else pytest.param(one, marks=pytest.mark.full) for one in ZOO])
def test_the_page_has_todays_rows_of_the_zoo(name: str) -> None:
    lines = board_page.table("zoo").splitlines()
    rows = list(board_page.zoo_rows([name]))
    assert len(rows) == len(board_page.targets.chips())
    assert [row for row in rows if row not in lines] == []


@pytest.mark.full
def test_the_page_has_todays_accuracy_by_rounding() -> None:
    lines = [line for line in board_page.table("rounding").splitlines() if line not in board_page.ROUNDING_HEAD]
    names = [line.split("|")[1].strip() for line in lines if line]
    assert names == ["cifarnet", "mobilenet_v2_cifar", "resnet8"]
    assert list(board_page.rounding_rows(names)) == [line for line in lines if line]
