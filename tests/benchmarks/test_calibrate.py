"""The cycle model's constants are those of the calibration, and the calibration says what the target files claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from benchmarks import calibrate
from benchmarks.calibrate import NAMES, NEUTRON_C, STEPS, Workload, errors, fit, workload
from benchmarks.networks import NETWORKS
from benchmarks.published import POINTS
from openneutron.convert import convert
from openneutron.machine import targets
from openneutron.options import Options


@cache
def _loads() -> Sequence[Workload]:
    return [workload(point) for point in POINTS]


def test_target_files_hold_the_fitted_constants() -> None:
    fitted = fit([load for load in _loads() if load.point.calibrates])
    for target in map(targets.load, NEUTRON_C):
        for name, value in zip(NAMES, fitted, strict=True):
            assert abs(getattr(target.cost, name) - value * STEPS) <= 1, (target.name, name)
    array, fitted_array = targets.load("imx95").cost, targets.load("imxrt700").cost
    assert (array.mac, array.lane, array.row) == (fitted_array.mac, fitted_array.lane, fitted_array.row)


def test_every_published_latency_is_met() -> None:
    found = [abs(load.error(load.target.cost)) for load in _loads()]
    assert max(found) <= 0.15 and sum(found) / len(found) <= 0.08


def test_held_out_points_are_on_another_target_than_the_fitted_ones() -> None:
    fitted, held = ({p.target for p in POINTS if p.calibrates is kind} for kind in (True, False))
    assert fitted and held and not fitted & held


@pytest.mark.parametrize("at", range(len(POINTS)), ids=lambda at: POINTS[at].network)
def test_a_workload_is_priced_as_the_compiler_predicts(at: int) -> None:
    load, point = _loads()[at], POINTS[at]
    options = Options(
        target=point.target,
        optimize="fast",
        passes_off=calibrate.NOT_STOCK,
        fetch_constants_to_sram=point.fetch_constants,
    )
    report = convert(NETWORKS[point.network](), options).report
    assert load.milliseconds(load.target.cost) == pytest.approx(report.totals.milliseconds)


def test_a_fit_finds_constants_it_was_made_with() -> None:
    """Latencies made by the model itself are met exactly, whatever the priors say."""
    loads = _loads()
    made = [
        Workload(
            calibrate.Point(load.point.target, load.point.network, load.milliseconds(load.target.cost), "made"),
            load.target, load.calls, load.copies,
        )
        for load in loads
    ]  # fmt: skip
    assert max(map(abs, errors(made, fit(made)))) < 0.05


def test_more_weight_bytes_cost_more() -> None:
    slow = np.array([calibrate.PRIORS[at].cycles for at in range(len(NAMES))])
    fast = slow.copy()
    slow[NAMES.index("weight_byte")] *= 4
    (load,) = [load for load in _loads() if load.point.network == "autoencoder"]
    assert errors([load], slow)[0] > errors([load], fast)[0] + 0.5
