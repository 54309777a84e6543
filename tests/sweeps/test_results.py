from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from openneutron.errors import MissingExtraError
from openneutron.sweeps.results import Sweep


def _sweep(folder: Path) -> Sweep:
    points = [(1, 9), (2, 5), (3, 6), (4, 1), (2, 5), (9, 9)]
    rows = [{"model": f"m{at}", "status": "ok", "reason": "", "x": x, "y": y} for at, (x, y) in enumerate(points)]
    rows.append({"model": "bad", "status": "failed", "reason": "=1+1", "x": None, "y": None})
    return Sweep(tuple(rows), folder)


def test_the_pareto_front(tmp_path: Path) -> None:
    assert [row["model"] for row in _sweep(tmp_path).pareto("x", "y")] == ["m0", "m1", "m4", "m3"]


def test_networks_have_a_front_each_and_more_accuracy_is_better() -> None:
    points = [("a", 1, 0.7), ("a", 2, 0.9), ("a", 3, 0.8), ("b", 9, 0.1), ("b", 8, 0.2)]
    rows = [{"status": "ok", "source": source, "ms": ms, "accuracy": share} for source, ms, share in points]
    found = Sweep(tuple(rows), Path())
    assert [row["ms"] for row in found.pareto("ms", "accuracy")] == [1, 2, 8]
    assert [row["ms"] for row in found.pareto("ms", "accuracy", by="")] == [1, 2]


def test_a_parquet_file_has_all_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = _sweep(tmp_path)
    found.save(parquet=True)
    assert parquet.read_table(tmp_path / "results.parquet").to_pylist() == list(found)


def test_without_pyarrow_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"a Parquet file needs .* pyarrow.*openneutron\[parquet\]"):
        _sweep(tmp_path).parquet()


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
