from __future__ import annotations

from collections import Counter

import pytest

import openneutron
from benchmarks import board_networks
from benchmarks.cortex_m import CMSIS_NN, Row, line
from benchmarks.published import CPU_ONLY_MILLISECONDS
from openneutron.board.interval import interval
from openneutron.machine import targets


def test_a_line_has_ratios_to_cmsis_nn_and_to_whole_tensors() -> None:
    row = Row("ds_cnn", 2_000_000, Counter(loops=4_000_000, rest=150_000), 600, 1_000, 24_000, (9.0, 10.0, 12.0))
    cells = line(row).split()
    assert cells[:6] == ["ds_cnn", "2,000,000", "8,300,000", "4,150,000", "0.50", "2.08"]
    assert cells[6:] == ["600", "1,000", "0.60", "24,000", "10.0", "(9.0", "to", "12.0)"]


def test_a_model_of_ones_own_is_compared_with_nobody() -> None:
    row = Row("mine", 2_000, Counter(loops=5_000), 600, 1_000, 24_000, (9.0, 10.0, 12.0))
    assert line(row).split()[:4] == ["mine", "2,000", "5,000", "2.50"]


@pytest.mark.parametrize("network", CPU_ONLY_MILLISECONDS)
def test_published_times_are_within_the_interval_of_cmsis_nns_instructions(network: str) -> None:
    target = targets.load("cortex_m33")
    estimate = target.milliseconds(round(CMSIS_NN[network] * target.cycles_per_instruction))
    low, high = interval(estimate, unexercised=1.0)
    assert low < CPU_ONLY_MILLISECONDS[network] < high


@pytest.mark.parametrize("network", CPU_ONLY_MILLISECONDS)
def test_a_core_is_estimated_below_the_published_times(network: str) -> None:
    model = getattr(board_networks, network)()
    totals = openneutron.compile(model, target="cortex_m33").report.totals
    assert totals.milliseconds < CPU_ONLY_MILLISECONDS[network]
    assert totals.milliseconds_low < totals.milliseconds < totals.milliseconds_high
