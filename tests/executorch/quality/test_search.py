"""The search: what helped stays, what fails is recorded, and layers get 16 bits where nothing free is enough."""

from __future__ import annotations

from typing import Any

import pytest

from openneutron.executorch.quality.goals import Goal, Measure
from openneutron.executorch.quality.search import FAILED, Search
from openneutron.executorch.quantize.choices import Choices
from tests.executorch.quality.networks import Spectrum, Stream, Uneven, images, rows
from tests.executorch.quality.test_tensors import made

FLOAT = Measure(120.0, 1.0)


def begun(model: Any, samples: Any, sqnr: float, **more: Any) -> Search:
    search = Search(made(model, samples), Goal(sqnr=sqnr), FLOAT, Choices(), **more)
    search.begin()
    return search


def test_free_choices_reach_the_goal_and_the_search_ends_there() -> None:
    search = begun(Uneven(), images(), 20.0)
    low = search.measure.sqnr
    search.try_free()
    assert low < 10 and search.reached and not search.best.layers
    assert search.done[-1].kept and search.done[-1].choices == search.best


def test_what_the_user_chose_stays() -> None:
    search = begun(Uneven(), images(), 200.0, fixed=frozenset({"correct_bias", "observer"}))
    search.try_free()
    assert not any(one.choices.correct_bias or one.choices.observer != "histogram" for one in search.done)


def test_a_stream_gets_16_bits_as_predicted() -> None:
    search = begun(Stream(), rows(), 35.0)
    low = search.measure.sqnr
    search.widen({}, float("inf"))
    assert low < 30 and search.reached
    assert {"add", "add_1"} <= {one.name for one in search.best.layers}
    assert search.layers == sorted(search.layers, key=lambda one: -one[1])


def test_operators_that_16_bits_rewrite_get_them_too() -> None:
    search = begun(Spectrum(), rows(), 35.0)
    low = search.measure.sqnr
    search.widen({}, float("inf"))
    assert "sqrt" in {one.name for one in search.best.layers}
    assert search.measure.sqnr > low + 3


def test_an_estimate_that_was_too_low_is_corrected_by_the_price() -> None:
    search = begun(Stream(), rows(), 60.0)
    asked: list[int] = []

    def price(choices: Choices) -> float:
        asked.append(len(choices.layers))
        return 1 + 0.1 * len(choices.layers)

    search.widen(dict.fromkeys(("linear", "add", "add_1", "add_2", "linear_4"), 0.02), 0.25, price)
    assert len(asked) > 1 and asked[0] > asked[-1]
    assert all(one.cycles <= 1.25 for one in search.done)


def test_a_trial_that_fails_is_a_record_and_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    search = begun(Uneven(), images(), 200.0)
    real = search.trials.quantize

    def quantize(choices: Choices) -> Any:
        if choices.equalize:
            raise RuntimeError("no two layers are alike")
        return real(choices)

    monkeypatch.setattr(search.trials, "quantize", quantize)
    search.try_free()
    (failed,) = [one for one in search.done if one.problem]
    assert failed.measure == FAILED and failed.problem == "RuntimeError: no two layers are alike"
    assert search.best.correct_bias and not search.best.equalize
