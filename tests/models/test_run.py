"""The list of networks and the page made of their results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models import run
from tests.models.libraries import networks

ROW = {
    "library": "timm", "name": "small", "target": "mcxn94x", "nodes": 10, "delegated": 9, "graphs": 2,
    "short": ["RAM"], "sqnr": 25.0, "left": {"aten.add.Tensor: too_large": 1}, "seconds": 3.0,
}  # fmt: skip


def test_the_list_is_long_sorted_and_without_doubles() -> None:
    known = networks()
    assert len(known) >= 120 and len({(one.library, one.name) for one in known}) == len(known)
    assert all(one.parameters <= 15_000_000 for one in known)
    costs = [one.parameters * one.pixels for one in known]
    assert costs == sorted(costs)


def test_the_page_tells_what_fits_and_what_is_left() -> None:
    text = run.page([ROW, {"library": "timm", "name": "odd", "target": "mcxn94x", "crash": "it | broke"}])
    row = "| small | mcxn94x | 90%, 9 of 10 | 2 | no: RAM | 25.0 dB |"
    assert row in text
    assert "crashed: it / broke" in text and "- small, mcxn94x: aten.add.Tensor: too_large (1)" in text
    assert "| mcxn94x | 2 | 0 (0%) | 0 | 0 | 0 | 1 |" in text


def test_the_page_of_the_repository_counts_its_own_rows() -> None:
    lines = [line.strip("|").split(" | ") for line in run.PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line] for line in lines]
    summary, found = ([row for row in rows if len(row) == width and row[1] != "chip"] for width in (7, 6))
    for chip, networks_run, wholly, fit, low, refused, crashed in summary[1:]:
        own = [row for row in found if row[1] == chip]
        counted = [sum(row[at].startswith(text) for row in own) for at, text in ((2, "100%"), (4, "yes"))]
        assert [int(networks_run), int(wholly.split()[0]), int(fit)] == [len(own), *counted]
        assert int(low) == sum(float(row[5].split()[0]) < run.GOOD for row in own) and refused == crashed == "0"


def test_a_run_that_was_stopped_goes_on_and_tries_again_what_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "models.jsonl")
    assert run.results() == []
    crashed = {"library": "timm", "name": "odd", "target": "mcxn94x", "crash": "killed"}
    lines = [json.dumps(ROW), json.dumps(crashed), '{"library": "timm", "na', json.dumps({**ROW, "name": "odd"})]
    run.RESULTS.write_text("\n".join(lines) + "\n")
    assert [row["name"] for row in run.results()] == ["small", "odd"] and not any("crash" in r for r in run.results())
