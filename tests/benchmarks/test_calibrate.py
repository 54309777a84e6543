"""The cycle model's constants are those of the calibration, and leaving points out shows what they are worth."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import calibrate
from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.calibrate import Load, errors, fit, left_out, left_out_widths, workload
from benchmarks.networks import NETWORKS
from benchmarks.published import IMX95_AT_MOST, POINTS
from benchmarks.yolo import yolov5n, yolov8s_seg
from openneutron.board.answer import stock_answer
from openneutron.board.cpu import CORTEX_M
from openneutron.board.fit import LeftOut, public_prior
from openneutron.board.interval import LEFT_OUT, LEFT_OUT_DOUBT
from openneutron.board.workload import FITTED, NAMES, NEUTRON_C, constants_in_files, with_constants
from openneutron.machine import targets

PAGE = Path(__file__).parents[2] / "docs/targets.md"


@cache
def _loads() -> Sequence[Load]:
    return [workload(point) for point in POINTS]


@cache
def _left_out() -> Sequence[LeftOut]:
    return left_out(_loads())


def _errors() -> list[float]:
    return [one.error for one in _left_out()]


def test_target_files_hold_the_fitted_constants() -> None:
    cycles = fit(_loads())
    for target in map(targets.load, NEUTRON_C):
        wanted = with_constants(target, cycles)
        for name in FITTED:
            assert getattr(target.cost, name) == pytest.approx(getattr(wanted, name), rel=1e-3, abs=1), (
                target.name,
                name,
            )
    fitted_array = targets.load("imxrt700").cost
    for array in (targets.load(name).cost for name in calibrate.ALSO_ARRAY):
        assert (array.mac, array.lane, array.row) == (fitted_array.mac, fitted_array.lane, fitted_array.row)
    assert CORTEX_M.exponential == pytest.approx(cycles[NAMES.index("softmax")], abs=0.5)


def test_the_file_of_their_uncertainty_is_current() -> None:
    rows = calibrate.posterior_text(_loads(), fit(_loads()))
    wanted = np.array(tomllib.loads(rows)["precision"])
    whiten = public_prior().whiten
    np.testing.assert_allclose(whiten.T @ whiten, wanted, rtol=1e-2, atol=1e-2 * np.abs(wanted).max())


def test_times_of_one_network_are_left_out_together() -> None:
    seen = [load for load in _loads() if load.point.network == "mobilenet_v1_1_224"]
    assert len(seen) == 2
    others = [load for load in _loads() if load.point.network != "mobilenet_v1_1_224"]
    assert _errors()[_loads().index(seen[0])] == pytest.approx(seen[0].error(fit(others)))


def test_left_out_points_are_predicted() -> None:
    found = np.abs(_errors())
    assert found.mean() <= calibrate.MEAN_WITHIN and found.max() <= calibrate.WORST_WITHIN


def test_every_point_lies_inside_its_left_out_interval() -> None:
    widths = left_out_widths(_left_out())
    for error, width in zip(_errors(), widths, strict=True):
        assert abs(math.log1p(error)) <= width
    assert math.exp(float(np.median(widths))) <= calibrate.INTERVAL_WITHIN


def test_intervals_are_made_from_these_errors() -> None:
    assert [math.log1p(error) for error in _errors()] == pytest.approx(LEFT_OUT, abs=1e-3)
    assert np.mean([one.doubt for one in _left_out()]) == pytest.approx(LEFT_OUT_DOUBT, abs=2e-4)


@pytest.mark.full  # fits every point without another one, twice
def test_a_time_that_no_fact_explains_is_not_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate.main([]) == 0
    text = capsys.readouterr().out
    assert "mean |error| 4.6%, largest 10.8%" in text
    assert "with it, leave-one-out on 12 points: mean |error| 5.5%, largest 18.6%" in text
    page = PAGE.read_text("utf-8")
    assert "the mean error is 4.6 %, the largest 10.8 %" in page
    assert "mean 5.5 %, largest 18.6 %" in page


def test_the_page_has_every_point_with_its_error() -> None:
    table = PAGE.read_text("utf-8").partition("| target | network | published |")[2]
    rows = [line.split(" | ") for line in table.split("\n\n")[0].splitlines()[2:]]
    fitted = errors(_loads(), fit(_loads()))
    for row, load, error, (left, _), width in zip(
        rows, _loads(), fitted, _left_out(), left_out_widths(_left_out()), strict=True
    ):
        time = load.milliseconds
        low, middle, high = (time * (1 + left) * math.exp(side * width) for side in (-1, 0, 1))
        wanted = [f"{time:.3f} ms", f"{time * (1 + error):.3f} ms", _percent(error)]
        wanted += [f"{middle:.3f} ms, {low:.3f} to {high:.3f}", f"{_percent(left)} |"]
        assert row[0] == f"| {load.point.target}" and row[2:] == wanted


def _percent(error: float) -> str:
    return f"{error * 100:+.1f} %".replace("-", "−")


@pytest.mark.parametrize("network", IMX95_AT_MOST)
def test_the_npu_alone_is_no_slower_than_a_whole_system(network: str) -> None:
    networks = {**NETWORKS, "yolov5n": yolov5n, "yolov8s_seg": yolov8s_seg}
    answer = stock_answer(networks[network](), targets.load("imx95"))
    assert answer.npu_milliseconds <= IMX95_AT_MOST[network]


@pytest.mark.parametrize("at", range(len(POINTS)), ids=lambda at: f"{POINTS[at].target}-{POINTS[at].network}")
def test_a_workload_is_priced_as_the_answer_says(at: int) -> None:
    load, point = _loads()[at], POINTS[at]
    answer = stock_answer(
        BOARD_NETWORKS[point.network](), load.work.target, fetch_constants=point.fetch_constants, sdk=point.sdk
    )
    assert load.work.milliseconds(constants_in_files()) == pytest.approx(answer.milliseconds, rel=2e-4)


def test_a_fit_finds_constants_it_was_made_with() -> None:
    """Latencies made by the model itself are met, whatever the priors say."""
    made = [replace(load, milliseconds=load.work.milliseconds(constants_in_files())) for load in _loads()]
    assert max(map(abs, errors(made, fit(made)))) < 0.05


def test_more_weight_bytes_cost_more() -> None:
    fast = np.array([prior.cycles for prior in calibrate.PRIORS])
    slow = fast.copy()
    slow[NAMES.index("weight_byte")] *= 4
    (load,) = [load for load in _loads() if load.point.network == "autoencoder"]
    assert errors([load], slow)[0] > errors([load], fast)[0] + 0.5


def test_what_the_points_do_not_determine_is_said() -> None:
    cycles = constants_in_files()
    factors = dict(zip(NAMES, calibrate.uncertainty(_loads(), cycles), strict=True))
    assert factors["mac"] < 1.1 < factors["call"]
