"""A compile that looks for better choices: what it reaches, says and repeats, and when it leaves things alone."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import OptionError
from openneutron.executorch.quality.cycles import costs_of, cycles_ratio
from openneutron.executorch.quality.tell import describe
from openneutron.executorch.quality.trials import Trials
from openneutron.executorch.quality.wish import Wish, given_choices
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.program import Program
from openneutron.report.model import OutputAccuracy, Report
from tests.executorch.quality.networks import Stream, Uneven, images, rows


def compiled(**options: object) -> Program:
    return on.compile(Uneven().eval(), images()[0], calibration=images(), **options)  # type: ignore[arg-type]


def test_the_default_reaches_the_goal_says_so_and_can_be_repeated(tmp_path: Path) -> None:
    plain, program, again = compiled(quality="plain"), compiled(), compiled()
    assert plain.report.output_sqnr < 10 < 25 <= program.report.output_sqnr and plain.report.warnings
    assert program.pte == again.pte and program.report.totals.cycles <= 1.2 * plain.report.totals.cycles
    done, cost, gain = (note for note in program.report.notes if note.startswith("quality: "))
    assert "equalize" in done and "× the cycles" in cost and "the goal is 25 dB" in gain
    assert program.report.seconds["looking for better choices"] > 0
    file = tmp_path / "q.toml"
    file.write_text(program.report.quantization, "utf-8")
    assert tomllib.loads(program.report.quantization)["equalize"] is True
    repeated = compiled(quantization=str(file))
    assert repeated.pte == program.pte and not repeated.report.quantization
    assert "looking for better choices" not in repeated.report.seconds


def test_16_bits_where_nothing_free_is_enough() -> None:
    program = on.compile(Stream().eval(), rows()[0], calibration=rows(), quality=35, quality_cycles=3)
    layers = tomllib.loads(program.report.quantization)["layer"]
    assert program.report.output_sqnr >= 35 and {one["activations"] for one in layers} == {"int16"}
    assert any("16-bit activations in" in note for note in program.report.notes)


def test_cycles_bound_what_is_chosen() -> None:
    plain = on.compile(Stream().eval(), rows()[0], calibration=rows(), quality="plain")
    program = on.compile(Stream().eval(), rows()[0], calibration=rows(), quality=60, quality_cycles=1)
    assert program.report.totals.cycles <= plain.report.totals.cycles
    assert any("below the goal of quality" in one for one in program.report.warnings)


def test_a_network_that_is_fine_is_quantized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(self: Trials, choices: Choices) -> None:
        raise AssertionError("a trial")

    monkeypatch.setattr(Trials, "measure", measure)
    samples = [(torch.randn(1, 64, generator=torch.Generator().manual_seed(at)),) for at in range(8)]
    program = on.compile(Rows(0.0).eval(), samples[0], calibration=samples, correct_bias=True)
    assert not any(note.startswith("quality: ") for note in program.report.notes) and not program.report.quantization


@pytest.mark.parametrize("whole", [lambda y: y > 0, lambda y: (y * 40).to(torch.int32)], ids=["bool", "int32"])
def test_outputs_without_decibels_are_told_by_how_many_are_equal(whole: Callable[[torch.Tensor], torch.Tensor]) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(16, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return whole(self.layer(x))

    torch.manual_seed(1)
    samples = [(torch.randn(1, 50, 16),) for _ in range(8)]
    program = on.compile(Model(), samples[0], calibration=samples, quality=60, quality_cycles=1)
    (output,) = program.report.outputs
    assert output.sqnr is None and 0.5 < output.agreement < 1
    told = [*program.report.warnings, *(note for note in program.report.notes if note.startswith("quality: "))]
    assert (
        sum(f"output 0{mark} {output.agreement:.1%} equal (counts as" in one for one in told for mark in (":", "")) > 1
    )


def test_trials_that_fail_leave_the_first_program(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compiled(
        quantization={"fit_ranges": True, "layer": [{"name": "aten.linear.default", "per_channel": False}]}
    )

    def measure(self: Trials, choices: Choices) -> None:
        raise MemoryError("too large")

    monkeypatch.setattr(Trials, "measure", measure)
    program = compiled()
    assert program.pte == plain.pte
    assert any("MemoryError: too large" in note for note in program.report.notes)


class Rows(torch.nn.Module):
    """Two linear layers; with `spread`, outputs whose weights differ so much that one scale serves few of them."""

    def __init__(self, spread: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)
        with torch.no_grad():
            self.first.weight /= torch.logspace(0, spread, 64)[:, None]
            self.second.weight *= torch.logspace(0, spread, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))  # channels behind it cannot be equalized


@pytest.mark.parametrize(("spread", "goal"), [(0.0, 25.0), (1.5, 42.0)], ids=["not needed", "needed"])
def test_linear_layers_have_scales_per_channel_only_where_accuracy_needs_them(spread: float, goal: float) -> None:
    samples = [(torch.randn(1, 64, generator=torch.Generator().manual_seed(at)),) for at in range(64)]
    program = on.compile(Rows(spread).eval(), samples[0], calibration=samples, quality=goal, quality_cycles=4)
    weights = [str(node.target) for node in program.quantized.graph.nodes if node.op == "call_function"]  # type: ignore[union-attr]
    assert any("per_channel" in one for one in weights) == bool(spread)
    assert any("linear layers per channel" in note for note in program.report.notes) == bool(spread)


def test_wishes() -> None:
    low, near, good = (OutputAccuracy("output 0", sqnr) for sqnr in (24.0, 26.0, 27.0))
    assert Wish().is_open([low]) and Wish().is_open([near]) and not Wish().is_open([good])
    assert not Wish("plain").is_open([low]) and Wish(30.0).is_open([good])
    assert Wish.of({"quantization": "q.toml"}).quality == "plain"
    assert Wish.of({"quantization": "q.toml", "quality": 30.0}).quality == 30.0
    assert not Wish(metric="top1").is_open([OutputAccuracy("output 0", 12.0, metric="top1", kept=1.0)])
    assert given_choices({"observer": "minmax", "equalize": False, "target": "imx95"}) == {"observer"}
    for wrong in ({"quality": "best"}, {"quality": 0}, {"quality_cycles": 0.5}, {"metric": "f1"}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            compiled(**wrong)


def test_sentences_and_prices() -> None:
    wide = Choices(observer="minmax", layers=tuple(LayerChoice(f"conv_{at}", activations="int16") for at in range(4)))
    assert describe(wide, Choices()) == "observer=minmax, 16-bit activations in 4 layers (conv_0, conv_1, conv_2, …)"
    report = compiled(quality="plain").report
    costs = costs_of(report)
    assert 0 < costs["conv2d"] < 1 and cycles_ratio(report, report) == 1.0
    assert cycles_ratio(Report(), Report()) == 0.0


class FewOutputs(nn.Module):
    """Layers whose weights take the time: a few positions, and channels of ranges that code badly with a scale for each."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(
            nn.Conv1d(64, 128, 3), nn.Tanh(), nn.Conv1d(128, 128, 3), nn.Tanh(), nn.Conv1d(128, 8, 1)
        )
        with torch.no_grad():
            self.layers[2].weight *= torch.logspace(-1, 0, 128).reshape(-1, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_convolutions_get_one_weight_scale_where_finer_ones_are_dear() -> None:
    batches = [(torch.randn(1, 64, 6, generator=torch.Generator().manual_seed(at)),) for at in range(8)]
    model = FewOutputs().eval()
    program = on.compile(model, batches[0], calibration=batches, quality=45, quality_cycles=1.5)
    layers = tomllib.loads(program.report.quantization)["layer"]
    assert any(one["name"].startswith("conv1d") and one.get("per_channel") is False for one in layers)
