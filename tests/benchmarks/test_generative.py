"""Speech networks are one graph on every chip, close to float, and need what docs/generative-models.md says."""

from __future__ import annotations

import pytest

from benchmarks.generative import CHIPS, HEADER, PAGE, measure
from benchmarks.speech_networks import NETWORKS

# One of each kind in every run: the encoder has what the decoder has.
ALWAYS = {(name, "imxrt700") for name in NETWORKS} - {("speech encoder", "imxrt700")}
ROWS = [
    pytest.param(name, chip, marks=() if (name, chip) in ALWAYS else pytest.mark.full)
    for name in NETWORKS
    for chip in CHIPS
]


def stored(name: str, chip: str) -> dict[str, str]:
    """The page's row, by column."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    (row,) = (line for line in lines if line[0] == name and line[2] == chip)
    return dict(zip(HEADER, row, strict=True))


@pytest.mark.parametrize(("name", "chip"), ROWS)
def test_a_network_is_one_graph_and_needs_what_the_page_says(name: str, chip: str) -> None:
    row, page = measure(name, chip), stored(name, chip)
    assert row.graphs == 1 and row.sqnr >= 25
    # Calibration is in float, whose last bits differ between processors.
    for column, found in (
        ("flash", row.flash),
        ("SRAM", row.sram),
        ("cycles", row.cycles),
        ("parameters", row.parameters),
    ):
        assert found == pytest.approx(int(page[column].replace(",", "")), rel=0.01), column
    assert page["SQNR"].endswith(" dB") and row.sqnr == pytest.approx(float(page["SQNR"].split()[0]), abs=0.5)
