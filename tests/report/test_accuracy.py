"""Figures of accuracy: the worst output counts, and parts that a good figure hides have a sentence."""

from __future__ import annotations

from openneutron.report.accuracy import low_outputs, missed_outputs, nearness, warnings_of_outputs, worst_sqnr
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


def test_nearness_counts_an_output_more_than_its_worst_part_and_nothing_above_the_goal() -> None:
    good, bad = OutputAccuracy("output 0", 40.0), OutputAccuracy("output 1", 15.0)
    assert nearness([good, bad], 25.0) == 20.0
    part = OutputAccuracy("output 0", 40.0, part="column 3", part_sqnr=5.0)
    assert (
        nearness([part], 25.0)
        == 20.0
        == nearness([OutputAccuracy("output 0", 30.0, part_sqnr=5.0, separate=True)], 25.0)
    )
    assert nearness([], 25.0) == 25.0


def test_a_good_output_below_the_goal_has_a_sentence_of_its_own() -> None:
    outputs = [OutputAccuracy("output 0", 19.0), OutputAccuracy("output 1", 22.04), OutputAccuracy("output 2", 26.0)]
    assert missed_outputs(outputs, 25.0, "pay more") == (
        "output 1: 22.0 dB, below the goal of quality, 25 dB; pay more",
    )
    assert missed_outputs(outputs, 20.0, "pay more") == ()
