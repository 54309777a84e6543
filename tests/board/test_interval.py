"""Intervals: from left-out errors, wider for what no published latency speaks about."""

from __future__ import annotations

import math

import pytest

from openneutron.board.interval import (
    LEFT_OUT,
    LEFT_OUT_DOUBT,
    UNEXERCISED_FACTOR,
    interval,
    spread,
    unexercised_share,
)
from openneutron.machine import targets

RT700 = targets.load("imxrt700")


def test_every_left_out_error_is_inside() -> None:
    for at, error in enumerate(LEFT_OUT):
        assert abs(error) <= spread([*LEFT_OUT[:at], *LEFT_OUT[at + 1 :]])
    assert math.exp(spread(LEFT_OUT)) <= 1.20


def test_the_interval_is_around_the_estimate_and_scales_with_it() -> None:
    low, high = interval(2.0, unexercised=0.0)
    assert low < 2.0 < high
    assert (low, high) == pytest.approx([2 * end for end in interval(1.0, unexercised=0.0)])


def test_time_in_kernels_without_a_published_latency_widens() -> None:
    low, high = interval(1.0, unexercised=0.0)
    wide_low, wide_high = interval(1.0, unexercised=1.0)
    assert wide_high == pytest.approx(high * UNEXERCISED_FACTOR)
    assert wide_low == pytest.approx(low / UNEXERCISED_FACTOR)


def test_doubt_widens_beyond_what_the_left_out_errors_contain() -> None:
    assert spread(LEFT_OUT, LEFT_OUT_DOUBT) == spread(LEFT_OUT)
    assert spread(LEFT_OUT, LEFT_OUT_DOUBT + 0.1) > 2.2 * math.sqrt(0.1)
    assert interval(1.0, unexercised=0.0, doubt=0.1)[1] > interval(1.0, unexercised=0.0)[1]


@pytest.mark.parametrize(
    ("kernels", "operators", "share"),
    [
        ({"conv2d": 100}, {}, 0.0),
        ({"conv2d": 75, "resize_nearest": 25}, {}, 0.25),
        ({"conv2d": 50}, {"SOFTMAX": 50}, 0.0),
        ({"conv2d": 50}, {"UNIDIRECTIONAL_SEQUENCE_LSTM": 50}, 0.5),
        ({}, {}, 0.0),
    ],
)
def test_the_share_that_nothing_published_exercises(
    kernels: dict[str, float], operators: dict[str, float], share: float
) -> None:
    assert unexercised_share(RT700, kernels, operators) == pytest.approx(share)


def test_nothing_is_known_of_a_target_without_a_latency() -> None:
    assert unexercised_share(targets.load("imx95"), {"conv2d": 1.0}, {}) == 1.0
