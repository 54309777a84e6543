"""Tuning: free choices first, then the dearest layers in 16 bits; the file it writes reaches what was promised."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from openneutron.errors import OptionError
from openneutron.executorch.analyze import tune as module_under_test
from openneutron.executorch.analyze.tune import Goal, Tuned, token_samples, tune
from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.accuracy import SAMPLES, output_sqnr, run_all
from openneutron.executorch.quantize.choices import Choices, to_toml
from openneutron.executorch.quantize.measure.original import run_original
from openneutron.executorch.quantize.post_training import quantize_exported
from tests import decoders

IMAGES = [(torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(at)),) for at in range(6)]


def network() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4))
    model[0].weight.data *= torch.logspace(-1, 1, 8).reshape(-1, 1, 1, 1)
    return model.eval()


def tuned(goal: Goal, **more: object) -> Tuned:
    return tune(network(), IMAGES[0], calibration=IMAGES, samples=IMAGES, goal=goal, target="", **more)  # type: ignore[arg-type]


def test_nothing_is_changed_where_the_goal_is_met() -> None:
    found = tuned(Goal(sqnr=5.0))
    assert found.reached and found.choices == Choices() and len(found.trials) == 1


def test_what_costs_no_cycles_comes_first_and_the_file_reaches_the_same(tmp_path: Path) -> None:
    low = tuned(Goal(sqnr=5.0)).measure.sqnr
    found = tuned(Goal(sqnr=low + 0.5))
    assert found.reached and not found.choices.layers and any(trial.kept for trial in found.trials[1:])
    file = tmp_path / "q.toml"
    file.write_text(to_toml(found.choices, found.rows(), head="tuned"), "utf-8")
    again = Choices.of({"quantization": str(file)})
    assert again == found.choices
    made = quantize_exported(export(network(), IMAGES[0]), IMAGES, again, NeutronQuantizer.of(again))
    wanted, results = run_original(network(), IMAGES), run_all(made.module, IMAGES)
    assert output_sqnr(wanted[:SAMPLES], results)[0] > low  # on the few samples that every compile measures


def test_layers_get_16_bits_when_nothing_else_helps() -> None:
    found = tuned(Goal(sqnr=70.0), start=Choices(per_channel=True, observer="minmax"))
    assert found.layers and found.layers == tuple(sorted(found.layers, key=lambda one: -one[1]))
    assert any(one.activations == "int16" for one in found.choices.layers)
    assert found.measure.sqnr > found.trials[0].measure.sqnr + 1


def test_layers_that_the_goal_does_not_need_go_back_to_8_bits() -> None:
    start = Choices(per_channel=True, observer="minmax")
    most = tuned(Goal(sqnr=200.0), start=start)
    found = tuned(Goal(sqnr=most.trials[0].measure.sqnr + 0.2), start=start, trials=30)
    assert found.reached and len(found.choices.layers) <= len(most.choices.layers)


def test_workers_change_nothing_in_what_is_found() -> None:
    start = Choices(observer="minmax")
    one, two = (tuned(Goal(sqnr=70.0), start=start, trials=12, workers=workers) for workers in (1, 2))
    assert one == two and one.layers and any(trial.kept for trial in one.trials[1:])


def test_trials_and_cycles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(Goal(sqnr=200.0), trials=3)
    assert not found.reached and len(found.trials) == 3
    monkeypatch.setattr(module_under_test._Prices, "ratio", lambda self, choices: 1.5 if choices.layers else 1.0)
    bounded = tune(network(), IMAGES[0], calibration=IMAGES, samples=IMAGES, goal=Goal(sqnr=200.0), most_cycles=1.2)
    assert not any(one.activations for one in bounded.choices.layers)


def test_accuracy_decides_where_it_is_the_goal() -> None:
    with torch.no_grad():
        classes = [int(network()(*image).argmax()) for image in IMAGES]
    found = tuned(Goal(drop=0.0), classes=classes)
    assert found.reached and found.measure.accuracy == found.floating.accuracy == 1.0
    assert {"accuracy", "kept", "sqnr"} <= found.rows()[0].keys()


def test_perplexity_decides_where_it_is_the_goal() -> None:
    samples = decoders.calibration()
    following = [int(token) for token, _ in (*samples[1:], samples[0])]
    found = tune(
        decoders.decoder(), samples[0], calibration=samples, samples=samples, classes=following,
        goal=Goal(perplexity=1.0), target="", trials=3,
    )  # fmt: skip
    assert found.trials[1].change.startswith("16 bits around") and found.trials[1].choices.activations == "int16"
    losses = [trial.measure.loss for trial in found.trials]
    assert found.measure.loss == min(losses) < losses[0] and found.rows()[0]["perplexity"] > 1
    assert abs(losses[1] - found.floating.loss) < abs(losses[0] - found.floating.loss)


def test_sequences_become_calls_of_a_token_each_up_to_the_context() -> None:
    model, example = decoders.decoder(), decoders.calibration()[0]
    samples, following = token_samples(model, example, [[5, 6, 7], list(range(40))], 0)
    assert following == [6, 7, *range(1, decoders.SHAPE.context + 1)]
    assert [int(place) for _, place in samples] == [0, 1, *range(decoders.SHAPE.context)]
    assert len(token_samples(model, example, [[5, 6, 7]], 1)[0]) == 1
    with pytest.raises(OptionError, match="no decoder"):
        token_samples(network(), IMAGES[0], [[1, 2]], 0)


def test_goals_that_cannot_be_meant() -> None:
    for goal in ({}, {"sqnr": 3.0, "drop": 0.1}):
        with pytest.raises(OptionError, match="one goal"):
            Goal(**goal)
    with pytest.raises(OptionError, match="labelled data"):
        tuned(Goal(accuracy=0.5))
