"""The stock answer of whole models, and where the report has it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import openneutron
from benchmarks.board_networks import BOARD_NETWORKS, cifarnet
from benchmarks.networks import Layers
from benchmarks.published import POINTS, Point
from openneutron.board.answer import NOTHING_CONVERTED, stock_answer
from openneutron.board.workload import NEUTRON_C
from openneutron.machine import targets
from openneutron.report.model import from_json, to_json
from tests.loops import Loop


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p.target}-{p.network}")
def test_published_latencies_lie_inside_the_interval(point: Point) -> None:
    answer = stock_answer(
        BOARD_NETWORKS[point.network](),
        targets.load(point.target),
        fetch_constants=point.fetch_constants,
        sdk=point.sdk,
    )
    assert answer.milliseconds_low <= point.milliseconds <= answer.milliseconds_high
    assert answer.milliseconds == pytest.approx(answer.npu_milliseconds + answer.cpu_milliseconds)


def test_a_compiled_program_has_both_answers() -> None:
    report = openneutron.compile(BOARD_NETWORKS["cifarnet"](), target="imxrt700", sdk="2.x").report
    assert report.stock.scratch_bytes == 40_960 > report.totals.scratch_bytes
    assert report.stock.arena_bytes == 44_768
    assert report.totals.milliseconds_low < report.totals.milliseconds < report.totals.milliseconds_high
    assert from_json(to_json(report)) == report


def test_a_chip_whose_npu_keeps_intermediates_needs_no_scratch_and_brings_its_kernels() -> None:
    target = targets.load("imxrt2660")
    answer = stock_answer(BOARD_NETWORKS["cifarnet"](), target)
    assert answer.scratch_bytes == 0 and answer.arena_bytes < 8_192 and answer.kernel_bytes > 0
    assert any(left.startswith("1 x FULLY_CONNECTED: ") for left in answer.left)
    assert any("no latency of imxrt2660 is published" in note for note in answer.notes)


def test_a_model_that_nxp_does_not_take_says_so() -> None:
    net = Layers((1, 16))
    answer = stock_answer(net.finish(net.dequantize(net.input)), targets.load("mcxn94x"))
    assert answer.graphs == answer.kernel_calls == answer.scratch_bytes == 0
    assert NOTHING_CONVERTED in answer.notes
    assert answer.cpu_milliseconds > 0 and answer.arena_bytes > 0
    assert answer.left[0].startswith("1 x DEQUANTIZE: ")


def test_a_target_without_latencies_or_cpu_model_says_so() -> None:
    answer = stock_answer(BOARD_NETWORKS["cifarnet"](), targets.load("imx95"))
    assert any("no latency of imx95" in note for note in answer.notes)
    assert any("its CPU's are assumed" in note for note in answer.notes) and answer.cpu_milliseconds > 0
    assert answer.milliseconds_high > 1.5 * answer.milliseconds


def test_a_loop_that_we_unroll_stays_a_loop_for_nxps_converter() -> None:
    report = openneutron.compile(Loop().data(), target="imxrt700").report
    assert all(operator.converted for operator in report.operators)
    assert any(left.startswith("1 x WHILE: ") for left in report.stock.left)


def _many_tiny_layers() -> bytes:
    net = Layers((1, 4, 4, 8))
    y = net.input
    for _ in range(60):
        y = net.conv(y, 8, 1)
    return net.finish(y)


def _depthwise_layers() -> bytes:
    net = Layers((1, 48, 48, 32))
    y = net.input
    for _ in range(8):
        y = net.depthwise(y)
    return net.finish(y)


def _one_tiny_layer() -> bytes:
    net = Layers((1, 16))
    return net.finish(net.fully_connected(net.input, 8))


def _wide_softmax() -> bytes:
    net = Layers((1, 16))
    return net.finish(net.softmax(net.fully_connected(net.input, 5000)))


@pytest.mark.parametrize("target", NEUTRON_C)
@pytest.mark.parametrize("unlike", [_many_tiny_layers, _depthwise_layers, _one_tiny_layer, _wide_softmax])
def test_models_unlike_the_published_ones_have_wider_intervals(unlike: Callable[[], bytes], target: str) -> None:
    found, known = (stock_answer(data, targets.load(target)) for data in (unlike(), cifarnet()))
    assert found.milliseconds_high / found.milliseconds > 1.2 * known.milliseconds_high / known.milliseconds
    assert found.milliseconds / found.milliseconds_low < 5  # and still say something
