"""The public ledger has every published point, and its page is made from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import ledger
from benchmarks.published import ARENAS, HEADERS, POINTS, UNEXPLAINED
from openneutron.board.ledger import Measurement, Prediction, read_ledger

PUBLIC = read_ledger(ledger.LEDGER)


def test_the_page_is_made_from_the_ledger() -> None:
    text = ledger.PAGE.read_text("utf-8")
    assert text.partition(ledger.BEGIN)[2].partition(ledger.END)[0].strip() == ledger.page_text(PUBLIC).strip()


def test_every_published_point_is_there() -> None:
    for point in (*POINTS, *UNEXPLAINED):
        measured = [
            time
            for one in PUBLIC
            if (one.chip, one.model) == (point.target, point.network)
            for time in one.milliseconds
        ]
        assert min(measured) <= point.milliseconds <= max(measured)
    headers = {(one.chip, one.model, one.weight_bytes, one.microcode_bytes, one.kernel_bytes) for one in PUBLIC}
    for one in HEADERS:
        assert (one.target, one.network, one.weight_bytes, one.microcode_bytes, one.kernel_bytes) in headers
    assert {one.arena_bytes for one in ARENAS} <= {one.arena_bytes for one in PUBLIC}


def test_misses_are_shown_and_predictions_have_a_date() -> None:
    rows = [row for point in PUBLIC for row in ledger.rows_of(point)]
    assert {row.hit for row in rows} == {True, False, None}
    assert all(one.predicted.date for one in PUBLIC if one.predicted)
    predictable = [one for one in PUBLIC if one.chip in ledger.NEUTRON_C and one.model in ledger.BOARD_NETWORKS]
    assert all(one.predicted for one in predictable)


@pytest.mark.parametrize(
    ("converter", "version"),
    [("", "2.x"), ("1.0.0+0X4e5686ed", "1.0"), ("1.2.0+0X6f710a6d", "1.2"), ("3.1.1", "3.1"), ("2.2.2", "2.x")],
)
def test_rules_are_those_of_the_converter(converter: str, version: str) -> None:
    point = Measurement(model="m", chip="imxrt700", source="s", converter=converter, scratch_bytes=1)
    assert ledger.sdk_of(point) == version


@pytest.mark.parametrize(
    ("figure", "predicted", "hit"),
    [
        ("scratch_bytes", 1_000, True), ("scratch_bytes", 1_016, False), ("arena_bytes", 1_256, True),
        ("arena_bytes", 1_257, False), ("weight_bytes", 1_049, True), ("weight_bytes", 1_051, False),
    ],
)  # fmt: skip
def test_what_is_a_hit(figure: str, predicted: int, hit: bool) -> None:
    made = Prediction("2026-11-19", figures={figure: predicted})
    point = Measurement(model="m", chip="c", source="s", predicted=made, **{figure: 1_000})  # type: ignore[arg-type]
    assert [row.hit for row in ledger.rows_of(point)] == [hit]


def test_a_time_outside_its_interval_is_a_miss() -> None:
    point = Measurement(
        model="m", chip="c", source="s", milliseconds=(1.0, 2.0), predicted=Prediction("d", 1.0, 0.5, 1.5)
    )
    assert [row.hit for row in ledger.rows_of(point)] == [False]
    assert [row.hit for row in ledger.rows_of(replace(point, milliseconds=(1.0,)))] == [True]


def test_a_network_that_cannot_be_built_is_not_predicted() -> None:
    assert ledger.predict(Measurement(model="m", chip="mcxn94x", source="s", scratch_bytes=1), "d") is None
