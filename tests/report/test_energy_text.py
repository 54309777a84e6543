from __future__ import annotations

from dataclasses import replace

from openneutron.report import columns
from openneutron.report.energy_text import energy_text
from openneutron.report.model import Energy, from_json, to_json
from tests.report.samples import report as sample
from tests.report.test_columns import STOCK

KNOWN = Energy(0.4, 0.3, 0.5, 0.1, 50, 40, 60, ("running: 20 mA (assumed)", "asleep: 0.008 mA (measured)"))


def test_energy_and_the_sources_of_its_currents_are_rows_of_the_board() -> None:
    made = replace(sample(), stock=STOCK, energy=KNOWN)
    rows = {label: stock for label, stock, _ in columns.rows(made)}
    assert rows["energy"] == energy_text(KNOWN) and "50 days (40 days to 60 days)" in rows["energy"]
    assert rows["  running"] == "20 mA (assumed)"
    assert from_json(to_json(made)).energy == KNOWN
    assert "energy" not in {label for label, _, _ in columns.rows(replace(sample(), stock=STOCK))}


def test_a_reason_stands_in_for_what_is_not_known() -> None:
    made = replace(sample(), stock=STOCK, energy=Energy(unknown="no currents of imxrt700 are public"))
    assert ("energy", "no currents of imxrt700 are public", "not on a board") in columns.rows(made)
