from __future__ import annotations

import openneutron
from openneutron.sweeps.figures import FIGURES, figures
from tests import tiny


def test_every_figure_comes_from_the_report() -> None:
    report = openneutron.compile(tiny.convnet()).report
    found = figures(report)
    assert list(found) == list(FIGURES)
    assert found["cycles"] == report.totals.cycles and found["stock_arena_bytes"] == report.stock.arena_bytes
    assert found["stock_ms_low"] <= found["stock_ms"] <= found["stock_ms_high"]
    assert found["fits"] is True and found["sqnr_db"] is None
