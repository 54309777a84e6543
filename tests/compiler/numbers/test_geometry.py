"""SAME and VALID windows, and the rows they need, against brute force."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openneutron.compiler.numbers.geometry import (
    SAME,
    VALID,
    Window,
    axis,
    transposed_demand,
    transposed_window,
    window_of,
)
from tests.sampling import examples


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "padding", "expected"),
    [
        (32, 3, 1, 1, SAME, (32, 1)),
        (32, 3, 2, 1, SAME, (16, 0)),
        (33, 3, 2, 1, SAME, (17, 1)),
        (7, 5, 1, 2, SAME, (7, 4)),
        (7, 3, 1, 1, VALID, (5, 0)),
        (2, 5, 1, 1, VALID, (-2, 0)),
        (1, 1, 3, 1, SAME, (1, 0)),
    ],
)
def test_axis(size: int, kernel: int, stride: int, dilation: int, padding: int, expected: tuple[int, int]) -> None:
    assert axis(size, kernel, stride, dilation, padding) == expected


def options(stride: int, dilation: int, padding: int) -> SimpleNamespace:
    return SimpleNamespace(
        strideH=stride, strideW=stride, dilationHFactor=dilation, dilationWFactor=dilation, padding=padding
    )


@examples(300)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5), st.integers(1, 4), st.sampled_from([SAME, VALID]))
def test_demand_covers_exactly_the_taps(size: int, kernel: int, stride: int, dilation: int, padding: int) -> None:
    window = window_of(options(stride, dilation, padding), (kernel, kernel), (size, size))
    for y in range(max(window.out_h, 0)):
        taps = [y * stride - window.pad_top + k * dilation for k in range(kernel)]
        inside = [tap for tap in taps if 0 <= tap < size]
        low, high = window.demand.rows(y, y + 1, size)
        assert not inside or (low <= inside[0] and inside[-1] < high)
        assert low == max(taps[0], 0) and high == min(max(taps[-1] + 1, 0), size)


@examples(300)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5), st.sampled_from([SAME, VALID]))
def test_transposed_demand_covers_every_source(output: int, kernel: int, stride: int, padding: int) -> None:
    window = transposed_window(options(stride, 1, padding), (kernel, kernel), (output, output))
    demand, height = transposed_demand(window), window.out_h
    for first in range(output):
        for last in range(first + 1, min(first + 4, output) + 1):
            sources = [
                i
                for i in range(max(height, 0))
                for k in range(kernel)
                if first <= i * stride - window.pad_top + k < last
            ]
            low, high = demand.rows(first, last, max(height, 0))
            assert all(low <= source < high for source in sources)
            # At most one row more than needed on either side.
            assert not sources or high - low <= sources[-1] - sources[0] + 3


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"stride_h": 32_768}, False),
        ({"stride_h": 32_767, "out_h": 40_000}, False),
        ({"kernel_w": 0}, False),
    ],
)
def test_window_fits_the_firmware(change: dict[str, int], fits: bool) -> None:
    names = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left")
    fields = dict.fromkeys(names, 1) | {"out_h": 8, "out_w": 8}
    assert Window(**(fields | change)).fits() is fits
