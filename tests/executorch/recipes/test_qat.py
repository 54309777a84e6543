"""Training with rounding in the loop: fused norms, the schedule, and every way a train function can fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from executorch.export import ExportRecipe, StageType
from torch import nn
from torch.fx import GraphModule

import openneutron
from openneutron.errors import OpenNeutronError, OptionError
from openneutron.executorch.fx import is_dequantize, is_quantize, operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.train.aware import prepare_training
from openneutron.executorch.quantize.train.training import freeze_norms, run_training
from openneutron.executorch.recipes import NeutronRecipeType, QatStage, Schedule, Training, run_recipe
from openneutron.executorch.run.runtime import load_program
from tests.executorch.recipes.networks import NormedLinear, images, settled

STEPS = 4


def train(model: Any, state: Training) -> None:
    """A few steps towards answers of zero, in batches of three."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, STEPS + 1):
        model.train()
        loss = model(torch.cat([x for (x,) in images(3, seed=step)])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.step(loss, step, STEPS)


@pytest.mark.parametrize("per_channel", [False, True], ids=["per_tensor", "per_channel"])
def test_every_norm_is_folded_and_the_program_runs_on_the_npu_alone(per_channel: bool) -> None:
    model = settled(NormedLinear())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    program = openneutron.compile(model, images(1)[0], train=train, per_channel=per_channel)
    quantized = program.quantized
    assert not [node for node in quantized.graph.nodes if "batch_norm" in operator_name(node)]
    layers = [n for n in quantized.graph.nodes if operator_name(n) in ("aten.conv2d.default", "aten.conv1d.default")]
    assert len(layers) == 5
    for layer in layers:
        assert all(is_dequantize(one) for one in layer.args[:2]), layer
        follower = next(iter(layer.users))
        assert is_quantize(follower) or is_quantize(next(iter(follower.users))), layer
    assert [v.operator for v in program.verdicts if not v.delegated and v.code != "border"] == []
    assert (
        program.report.output_sqnr is not None and program.report.output_sqnr > 20
    )  # from the trained network in float
    (x,) = images(1, seed=20)[0]
    (got,) = program.run(x)
    wanted = quantized(x)
    assert (got - wanted).abs().max() <= (wanted.max() - wanted.min()) / 25
    assert not model.training and all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_stage_takes_the_place_of_quantize() -> None:
    lines: list[str] = []
    recipe = ExportRecipe.get_recipe(NeutronRecipeType.INT8_QAT_PER_TENSOR, train=train)
    stage = QatStage([NeutronQuantizer(is_qat=True)], train, progress=lines.append)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    session = run_recipe(model, images(1), recipe, instead={StageType.QUANTIZE: stage})
    assert load_program(bytes(session.get_pte_buffer())).run(images(1)[0][0])[0].shape == (1, 4, 14, 14)
    assert lines[-1].startswith("training: 100 %, loss ")
    assert all("duration_ms" in artifact.context for artifact in session.get_stage_artifacts().values())


def test_the_stage_serves_the_recipe_of_another_backend() -> None:
    """XNNPACK's quantizer in a recipe of its own, with a pass around each step: nothing here is Neutron's."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.export import LoweringRecipe, QuantizationRecipe

    seen: list[str] = []

    def note(name: str) -> Any:
        return lambda model: seen.append(name) or model

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_qat=True))
    steps = {f"{name}_passes": [note(name)] for name in ("pre_prepare", "post_prepare", "pre_convert", "post_convert")}
    quantization = QuantizationRecipe(quantizers=[quantizer], is_qat=True, train_fn=raises, **steps)
    recipe = ExportRecipe(name="theirs", quantization_recipe=quantization, lowering_recipe=LoweringRecipe())
    with pytest.raises(OpenNeutronError, match="out of coffee"):
        run_recipe(model, images(1), recipe)
    quantization.train_fn = lambda prepared: prepared(torch.randn(4, 3, 16, 16))
    session = run_recipe(model, images(1), recipe)
    assert seen[-4:] == ["pre_prepare", "post_prepare", "pre_convert", "post_convert"] and model.training
    (x,) = images(1, seed=3)[0]
    (got,) = load_program(bytes(session.get_pte_buffer())).run(x)
    wanted = session.get_stage_artifacts()[StageType.QUANTIZE].data["forward"](x)
    assert torch.allclose(got, wanted, atol=1e-5)


@pytest.fixture(scope="module")
def prepared() -> GraphModule:
    """One prepared model: preparing takes torchao seconds, and these tests do not care what the others did to it."""
    return prepare_training(settled(NormedLinear()), images(1)[0], NeutronQuantizer(is_qat=True))


def test_the_schedule_freezes_norms_then_observers_even_when_the_loop_calls_train(prepared: GraphModule) -> None:
    seen: list[tuple[bool, bool, bool]] = []

    def watch(model: Any, state: Training) -> None:
        for step in range(1, 9):
            model.train()
            state.step(model(torch.randn(4, 3, 16, 16)).mean(), step, 8)
            moving = any(n.args[5] for n in model.graph.nodes if operator_name(n) == "aten.batch_norm.default")
            seen.append((moving, state.norms_frozen, state.observers_frozen))

    run_training(prepared, watch, Schedule(0.5, 0.75))
    assert seen == [(True, False, False)] * 3 + [(False, True, False)] * 2 + [(False, True, True)] * 3


def test_frozen_norms_keep_their_statistics(prepared: GraphModule) -> None:
    prepared.train()
    freeze_norms(prepared)
    before = {name: value.clone() for name, value in prepared.named_buffers() if "running" in name}
    prepared(torch.randn(4, 3, 16, 16))
    assert before and all(torch.equal(dict(prepared.named_buffers())[name], value) for name, value in before.items())


def _train_layer(model: Any, parameters: Any, rate: float) -> None:
    optimizer = torch.optim.SGD(parameters, lr=rate)
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize(
    ("function", "changed"),
    [
        (lambda model: _train_layer(model, model.parameters(), 0.1), True),
        (lambda model: _train_layer(model, model.parameters(), 0.0), False),
        (lambda model: _train_layer(model, nn.Linear(4, 2).parameters(), 0.1), False),
        (lambda model: model(torch.ones(2, 4)), False),
    ],
    ids=["trained", "no rate", "another's parameters", "no step"],
)
def test_a_training_that_changes_no_weight_is_a_warning(function: Any, changed: bool) -> None:
    report = openneutron.compile(nn.Linear(4, 2).eval(), (torch.ones(1, 4),), train=function).report
    assert any("training changed no weight" in one for one in report.warnings) is not changed


def raises(model: Any) -> None:
    raise RuntimeError("out of coffee")


def nan_loss(model: Any, state: Training) -> None:
    state.step(torch.tensor(float("nan")), 1, 2)


def nan_weights(model: Any) -> None:
    with torch.no_grad():
        next(model.parameters()).fill_(float("inf"))


def bad_count(model: Any, state: Training) -> None:
    state.step(0.0, 3, 2)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (raises, "qat: the train function failed: RuntimeError: out of coffee"),
        (nan_loss, "qat: the loss is nan at step 1 of 2"),
        (nan_weights, "qat: training left .* not finite"),
        (bad_count, "qat: step 3 of 2"),
        (lambda model: None, "qat: the train function never called the model"),
    ],
    ids=["raises", "nan_loss", "nan_weights", "bad_count", "never_called"],
)
def test_a_failing_train_function_is_one_sentence_that_names_the_stage(function: Any, sentence: str) -> None:
    model = torch.fx.symbolic_trace(nn.Linear(2, 2))
    with pytest.raises(OpenNeutronError, match=sentence):
        run_training(model, function, Schedule())


def test_contradictions_are_refused() -> None:
    model = settled(NormedLinear())
    with pytest.raises(OptionError, match="calibration and train are both given"):
        openneutron.compile(model, images(1)[0], calibration=images(1), train=train)
    with pytest.raises(OptionError, match="cortex_m does not train"):
        openneutron.compile(model, images(1)[0], recipe="cortex_m", train=train)
    with pytest.raises(OptionError, match="freeze_norms is 2"):
        Schedule(freeze_norms=2)
    with pytest.raises(OptionError, match="there is no quantizer"):
        QatStage([], train)
