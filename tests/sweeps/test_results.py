from __future__ import annotations

import csv
import json
from pathlib import Path

from openneutron.sweeps.results import Sweep


def _sweep(folder: Path) -> Sweep:
    points = [(1, 9), (2, 5), (3, 6), (4, 1), (2, 5), (9, 9)]
    rows = [{"model": f"m{at}", "status": "ok", "reason": "", "x": x, "y": y} for at, (x, y) in enumerate(points)]
    rows.append({"model": "bad", "status": "failed", "reason": "=1+1", "x": None, "y": None})
    return Sweep(tuple(rows), folder)


def test_the_pareto_front(tmp_path: Path) -> None:
    assert [row["model"] for row in _sweep(tmp_path).pareto("x", "y")] == ["m0", "m1", "m4", "m3"]


def test_the_files_have_all_rows(tmp_path: Path) -> None:
    found = _sweep(tmp_path)
    found.save()
    assert [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()] == list(found)
    with (tmp_path / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 7 and lines[0]["x"] == "1" and lines[6]["x"] == ""
    assert lines[6]["reason"] == "'=1+1", "no spreadsheet runs it"


def test_it_is_a_sequence_and_a_table(tmp_path: Path) -> None:
    found = _sweep(tmp_path)
    assert len(found) == 7 and found[0]["x"] == 1 and len(found[:2]) == 2 and not found.ok
    assert list(found.table()["model"])[-1] == "bad" and "7 variants, 6 ok" in repr(found)
