from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import openneutron
from benchmarks import board_networks
from benchmarks.cortex_m import (
    CMSIS_NN,
    CMSIS_NN_LAYER_PIXELS,
    CMSIS_NN_LAYERS,
    CONVOLUTIONAL,
    TARGET,
    Row,
    line,
    measure,
)
from benchmarks.published import CPU_ONLY_MILLISECONDS, KWS_LAYER_MICROSECONDS
from openneutron.board.interval import interval
from openneutron.machine import targets
from tests.firmware import image


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


def test_layers_of_a_keyword_spotter_take_what_was_published() -> None:
    """Each takes about what other code takes for it, the pool no more; two take less than a thousandth of the time."""
    report = openneutron.compile(board_networks.ds_cnn(), target="cortex_m33").report
    target, uncertain = targets.load("cortex_m33"), report.totals.milliseconds_high / report.totals.milliseconds
    for published in KWS_LAYER_MICROSECONDS.values():
        pairs = zip(report.kernels, published, strict=True)
        large = [(made, time) for made, time in pairs if time > sum(published) / 1000]
        assert [made.kernel for made, _ in large] == ["conv2d", *["depthwise_conv2d", "conv2d"] * 4, "avg_pool2d"]
        for made, time in large:
            ratio = target.milliseconds(made.cycles) * 1000 / time
            assert ratio < uncertain, made.kernel
            assert made.kernel == "avg_pool2d" or ratio > 1 / uncertain, made.kernel
        assert report.totals.milliseconds * 1000 < sum(published)


@pytest.mark.parametrize("published", KWS_LAYER_MICROSECONDS.values(), ids=KWS_LAYER_MICROSECONDS)
def test_published_layers_are_within_the_interval_of_cmsis_nns_instructions(published: tuple[int, ...]) -> None:
    """Its layers of 25 x 5 pixels are those that were counted for more pixels, in turn depth-wise and dense."""
    target = targets.load("cortex_m33")
    for kernel, times in (("depthwise_conv2d", published[1:9:2]), ("conv2d", published[2:9:2])):
        instructions = CMSIS_NN_LAYERS[kernel] * 25 * 5 / CMSIS_NN_LAYER_PIXELS
        estimate = target.milliseconds(round(instructions * target.cycles_per_instruction))
        low, high = interval(estimate, unexercised=1.0)
        assert all(low < microseconds / 1000 < high for microseconds in times), kernel


@pytest.mark.full
@pytest.mark.parametrize("network", CMSIS_NN)
def test_the_page_has_what_is_measured(network: str) -> None:
    """Instructions and code depend on the cross compiler a little, memory does not."""
    if absent := image.missing_tools():
        pytest.skip(f"{', '.join(absent)} not found")
    page = (Path(__file__).parents[2] / "docs" / "without-the-npu.md").read_text("utf-8")
    found = re.search(
        rf"^\| {network} \| ([\d.]+) M \| [\d.]+ M \| ([\d.]+) \| ([\d,]+) \| [\d.]+ \| ([\d,]+) \|$",
        page,
        re.MULTILINE,
    )
    assert found, f"no row of {network}"
    row = measure(network, TARGET)
    millions, ratio, arena, code = (float(cell.replace(",", "")) for cell in found.groups())
    assert row.instructions / 1e6 == pytest.approx(millions, rel=0.03, abs=0.01)
    assert row.instructions / CMSIS_NN[network] == pytest.approx(ratio, abs=0.03) and ratio < 1
    assert row.arena_bytes == arena and row.code_bytes == pytest.approx(code, rel=0.03)


@pytest.mark.full
@pytest.mark.parametrize("network", CMSIS_NN)
def test_the_page_has_what_a_core_with_helium_takes(network: str) -> None:
    if absent := image.missing_tools():
        pytest.skip(f"{', '.join(absent)} not found")
    page = (Path(__file__).parents[2] / "docs" / "without-the-npu.md").read_text("utf-8")
    found = re.search(rf"^\| {network} \| ([\d.]+) M \| ([\d,]+) \| ([\d.]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert found, f"no row of {network}"
    row = measure(network, "cortex_m55")
    millions, arena, share, code = (float(cell.replace(",", "")) for cell in found.groups())
    assert row.instructions / 1e6 == pytest.approx(millions, rel=0.03, abs=0.01)
    assert row.arena_bytes == arena and row.arena_bytes / row.whole_bytes == pytest.approx(share, abs=0.01)
    assert network not in CONVOLUTIONAL or share <= 0.65
    assert row.code_bytes == pytest.approx(code, rel=0.03)


@pytest.mark.full
@pytest.mark.parametrize("target", ["cortex_m33", "cortex_m55"])
@pytest.mark.parametrize("network", CONVOLUTIONAL)
def test_half_of_whole_tensors_memory_is_kept(network: str, target: str) -> None:
    if absent := image.missing_tools():
        pytest.skip(f"{', '.join(absent)} not found")
    row = measure(network, target, fit=0.5)
    assert row.arena_bytes <= row.whole_bytes / 2
