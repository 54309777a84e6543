from __future__ import annotations

import numpy as np
import pytest

from openneutron.board.answer import converted_by_stock
from openneutron.board.fit import Measured, Prior, fit, left_out, precision, public_prior
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
    sure = Prior.of_factors(constants_in_files(), [1.001] * len(NAMES))
    unsure = Prior.of_factors(constants_in_files(), [10.0] * len(NAMES))
    assert abs(slow.error(fit([slow], unsure))) < 0.01
    assert slow.error(fit([slow], sure)) == pytest.approx(-0.5, abs=0.01)


def test_a_single_point_is_predicted_by_the_prior_alone(work: Workload) -> None:
    point = Measured(work, 3 * work.milliseconds(constants_in_files()))
    assert left_out([point], public_prior()) == pytest.approx([-2 / 3], abs=1e-3)


def test_precision_of_a_prior_alone_is_the_priors(work: Workload) -> None:
    prior = public_prior()
    found = precision([], prior, np.exp(prior.logs))
    assert found == pytest.approx(prior.whiten.T @ prior.whiten, rel=1e-6, abs=1e-6)
