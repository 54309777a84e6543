"""Figures of accuracy: the worst output counts, and parts that a good figure hides have a sentence."""

from __future__ import annotations

from openneutron.report.accuracy import low_outputs, warnings_of_outputs, worst_sqnr
from openneutron.report.model import OutputAccuracy, Report, from_json, to_json

LOST_PART = OutputAccuracy("output 0", 49.7, part="columns 4..8", part_sqnr=0.0, part_low=0.1, part_high=0.9, step=2.5)


def test_the_worst_output_counts() -> None:
    assert worst_sqnr([OutputAccuracy("output 0", 40.0), OutputAccuracy("output 1", agreement=1.0)]) == 40.0
    assert worst_sqnr([]) is None


def test_a_lost_part_is_named_with_its_range_and_the_step() -> None:
    (text,) = warnings_of_outputs([LOST_PART])
    assert text.startswith("columns 4..8 of output 0: 0.0 dB") and "0.1 and 0.9" in text and "2.5 apart" in text
    assert warnings_of_outputs([OutputAccuracy("output 0", 49.7, part="column 1", part_sqnr=21.0)]) == ()


def test_outputs_travel_in_the_json() -> None:
    report = Report(outputs=(LOST_PART,))
    assert from_json(to_json(report)).outputs == (LOST_PART,)


def test_an_output_below_the_good_has_a_sentence() -> None:
    outputs = [
        OutputAccuracy("output 0", 40.0),
        OutputAccuracy("output 1", 9.4),
        OutputAccuracy("output 2", agreement=1.0),
    ]
    assert low_outputs(outputs, "try it") == ("output 1 is 9.4 dB SQNR from float, below 20 dB; try it",)
