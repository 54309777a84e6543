from __future__ import annotations

from pathlib import Path

import pytest

import openneutron
from openneutron.analyze.data.source import Data
from openneutron.sweeps import task
from openneutron.sweeps.plan import Model
from openneutron.sweeps.task import Work, measure, prepare


def test_a_row_has_what_a_compile_says(folder: Path) -> None:
    shared = prepare(Work(Model("convnet.tflite"), {}), 600.0)
    outcome = measure(shared, {"target": "mcxn94x"}, 600.0, report=True)
    report = openneutron.compile("convnet.tflite", target="mcxn94x").report
    assert outcome.row["status"] == "ok" and outcome.row["cycles"] == report.totals.cycles
    assert outcome.lasting and "<html" in outcome.report
    assert measure(shared, {"target": "mcxn94x"}, 600.0, report=True) == outcome


def test_a_model_travels_as_bytes(folder: Path) -> None:
    content = (folder / "convnet.tflite").read_bytes()
    (folder / "convnet.tflite").unlink()
    shared = prepare(Work(Model("convnet.tflite"), {}, content), 600.0)
    assert shared.data == content and shared.name == "convnet.tflite"


def test_failures_are_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = prepare(Work(Model("convnet.tflite"), {}), 600.0)
    refused = measure(shared, {"fit_bytes": 10}, 600.0, report=False)
    assert refused.row["status"] == "failed" and "budget" in refused.row["reason"] and refused.lasting
    monkeypatch.setattr(task, "figures", lambda report: 1 / 0)
    bug = measure(shared, {}, 600.0, report=False)
    assert bug.row["reason"] == "unexpected ZeroDivisionError: division by zero" and not bug.lasting

    def forever(report: object) -> None:
        while True:
            sum(range(100))

    monkeypatch.setattr(task, "figures", forever)
    late = measure(shared, {}, 0.3, report=False)
    assert late.row == {"status": "timeout", "reason": "not done after 0.3 s"} and not late.lasting


def test_a_model_that_does_not_load_fails_for_all_its_variants(folder: Path) -> None:
    (folder / "own_factories.py").write_text("def make(width):\n    raise ValueError('too wide')\n")
    shared = prepare(Work(Model("own_factories:make", (("width", 9),)), {}), 600.0)
    row = measure(shared, {}, 600.0, report=False).row
    assert row["status"] == "failed" and "ValueError: too wide" in row["reason"] and "width=9" in row["reason"]


def test_a_row_has_its_accuracy_and_says_what_the_data_lacks(labelled: Path) -> None:
    whole, part = (
        measure(prepare(Work(Model("convnet.tflite", data=Data(given)), {}), 600.0), {}, 600.0, report=False)
        for given in ("d-{0..1}.npz", "d-{1..2}.npz")
    )
    assert whole.row["status"] == "ok" and whole.row["samples"] == 24 and whole.lasting
    assert part.row["status"] == "incomplete" and part.row["samples"] == 12 and not part.lasting
    assert "d-2.npz: there is no such file" in part.row["reason"] and part.row["cycles"] == whole.row["cycles"]
