from __future__ import annotations

import numpy as np
import pytest

from openneutron.board.answer import converted_by_stock
from openneutron.board.fit import ASSUMED_FACTOR, Belief, Measured, believe, fit, left_out, precision, public_prior
from openneutron.board.workload import NAMES, Workload, constants_in_files, workload_of
from openneutron.machine import targets
from tests import tiny


@pytest.fixture(scope="module")
def work() -> Workload:
    target = targets.load("mcxn94x")
    return workload_of(converted_by_stock(tiny.convnet(), target), target)


def test_a_latency_that_the_prior_expects_changes_nothing(work: Workload) -> None:
    expected = constants_in_files()
    found = fit([Measured(work, work.milliseconds(expected))], public_prior())
    assert found == pytest.approx(expected, rel=1e-3)


def test_a_latency_moves_the_constants_as_far_as_it_outweighs_the_prior(work: Workload) -> None:
    slow = Measured(work, 2 * work.milliseconds(constants_in_files()))
    sure = Belief.of_factors(constants_in_files(), [1.001] * len(NAMES))
    unsure = Belief.of_factors(constants_in_files(), [10.0] * len(NAMES))
    assert abs(slow.error(fit([slow], unsure))) < 0.01
    assert slow.error(fit([slow], sure)) == pytest.approx(-0.5, abs=0.01)


def test_a_single_point_is_predicted_by_the_prior_alone(work: Workload) -> None:
    point = Measured(work, 3 * work.milliseconds(constants_in_files()))
    (found,) = left_out([point], public_prior())
    assert found.error == pytest.approx(-2 / 3, abs=1e-3)
    assert found.doubt == pytest.approx(public_prior().doubt(work), rel=1e-3)


def test_precision_of_a_prior_alone_is_the_priors(work: Workload) -> None:
    prior = public_prior()
    found = precision([], prior, np.exp(prior.logs))
    assert found == pytest.approx(prior.whiten.T @ prior.whiten, rel=1e-6, abs=1e-6)


def test_a_point_takes_doubt_away(work: Workload) -> None:
    point = Measured(work, work.milliseconds(constants_in_files()))
    assert believe([point], public_prior()).doubt(work) < public_prior().doubt(work)


def test_doubt_is_that_of_the_constants_a_time_hangs_on_and_of_assumed_costs(work: Workload) -> None:
    sure, unsure = (Belief.of_factors(constants_in_files(), [factor] * len(NAMES)) for factor in (1.001, 2.0))
    plain = work._replace(assumed_cycles=0)
    slopes = plain.slopes(constants_in_files())
    assert unsure.doubt(plain) == pytest.approx(float(slopes @ slopes) * np.log(2) ** 2, rel=1e-6)
    assert sure.doubt(plain) < 1e-4 < sure.doubt(work)
    assert sure.doubt(work) == pytest.approx(
        (work.assumed_share(constants_in_files()) * np.log(ASSUMED_FACTOR)) ** 2, abs=1e-4
    )
