from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

from examples import demo
from openneutron.program import Program
from openneutron.report.model import Report, Totals

COUNT = 1000
LABELS = np.arange(COUNT) % 10


def scores(wrong: int) -> np.ndarray[Any, Any]:
    """One-hot scores whose first `wrong` rows name another class."""
    answers = LABELS.copy()
    answers[:wrong] = (answers[:wrong] + 1) % 10
    return np.eye(10)[answers]


GOOD = demo.Results(LABELS, scores(150), scores(150), scores(150), np.zeros(COUNT, np.int64), 777)
PROGRAM = Program(b"", "pte", Report(totals=Totals(cycles=777)), loader=lambda data, where: tuple)


def verdict(results: demo.Results) -> tuple[int, str]:
    console = Console(file=io.StringIO(), width=160)
    code = demo.print_checks(PROGRAM, results, demo.Stopwatch(Progress()), console)
    return code, console.file.getvalue()  # type: ignore[attr-defined]


def test_kept_promises_are_exit_code_zero() -> None:
    code, text = verdict(GOOD)
    assert code == 0
    assert text.count("kept") == 4
    assert "85.0 %, +0.0 points against float" in text


BROKEN = {
    "one LSB on one image": {"reference_lsb": np.eye(1, COUNT, 3, dtype=np.int64)[0]},
    "0.6 points lost": {"pte_scores": scores(156), "pt2e_scores": scores(156)},
    "agreement of 99.4 %": {"pt2e_scores": scores(144)},
    "cycles differ by one": {"simulated_cycles": 778},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_exit_code_one(name: str) -> None:
    code, text = verdict(replace(GOOD, **BROKEN[name]))
    assert code == 1
    assert text.count("BROKEN") == 1
