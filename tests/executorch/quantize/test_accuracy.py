"""Every compile says how far its outputs are from float, and warns when that is too far."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.executorch.quantize.accuracy import FULL, compare_outputs, output_sqnr
from openneutron.report.accuracy import GOOD, LOST, warnings_of_outputs, worst_sqnr


def test_decibels_of_each_float_output() -> None:
    ones = torch.ones(100)
    found = output_sqnr([(ones, ones.long(), ones)], [(ones * 1.1, ones.long(), ones)])
    assert [round(one, 3) for one in found] == [20.0, FULL]
    assert output_sqnr([torch.zeros(2)], [torch.ones(2)]) == (-FULL,)


class Outlier(nn.Module):
    """One channel a thousand times larger than the other, which then has no step left."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 2, 1, bias=False)
        self.first.weight.data = torch.tensor([[1000.0, 0.0], [0.0, 1.0]]).reshape(2, 2, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.first(x)
        return y[:, 1:].relu()


def test_a_loss_is_a_warning_that_names_the_layer_and_the_command() -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 2, 8, 8),)
    report = on.compile(Outlier().eval(), image, calibration=[image], quality="plain").report
    assert report.output_sqnr is not None and report.output_sqnr < 20
    (warning,) = report.warnings
    assert (
        f"{report.output_sqnr:.1f} dB" in warning and "(test_accuracy.py" in warning and "openneutron bisect" in warning
    )
    assert "warning" in dict(report_facts(report))


def test_observer_and_excluded_layers_are_options_of_compile() -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 2, 8, 8),)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3)).eval()
    report = on.compile(model, image, calibration=[image], observer="minmax", exclude=["2"]).report
    kept = [node for node in report.nodes if node.code == "kept_float"]
    assert [node.operator for node in kept] == ["aten.convolution.default"]
    assert report.output_sqnr is not None and report.output_sqnr > 30


def report_facts(report: on.Report) -> list[tuple[str, str]]:
    from openneutron.report.facts import facts

    return facts(report)


class Head(nn.Module):
    """Boxes in pixels and scores from 0 to 1 in one output, as detectors have them."""

    def __init__(self, layout: str) -> None:
        super().__init__()
        self.layout = layout
        self.boxes, self.scores = nn.Linear(16, 4), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        boxes, scores = self.boxes(x) * 100 + 320, torch.sigmoid(self.scores(x))
        if self.layout == "columns":
            return torch.cat([boxes, scores], -1)
        if self.layout == "channels":
            return torch.cat([boxes, scores], -1).transpose(1, 2).unflatten(2, (5, 4))
        if self.layout == "assigned":
            joined = torch.zeros(x.shape[0], x.shape[1], 9)
            joined[..., :4] = boxes
            joined[..., 4:] = scores
            return joined
        return torch.stack([boxes, scores[..., :4]])


@pytest.mark.parametrize("layout", ("columns", "channels", "assigned", "stacked"))
def test_joined_parts_of_different_ranges_are_not_lost(layout: str) -> None:
    torch.manual_seed(0)
    samples = [(torch.randn(1, 20, 16),) for _ in range(6)]
    report = on.compile(Head(layout).eval(), samples[0], calibration=samples).report
    (output,) = report.outputs
    assert output.part_sqnr is not None and output.part_sqnr > 30 and not report.warnings


class Scaled(nn.Module):
    """Pixels and shares in one tensor by the weights of a layer, which no join tells apart."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(16, 9), nn.Linear(9, 9, bias=False)
        with torch.no_grad():
            self.scale.weight.copy_(torch.diag(torch.tensor([120.0] * 4 + [0.5] * 5)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale(torch.sigmoid(self.layer(x)))


def test_a_part_that_is_lost_is_named() -> None:
    torch.manual_seed(0)
    samples = [(torch.randn(1, 20, 16),) for _ in range(6)]
    report = on.compile(Scaled().eval(), samples[0], calibration=samples, quality="plain").report
    assert report.output_sqnr is not None and report.output_sqnr > GOOD
    (output,) = report.outputs
    assert output.part == "columns 4..8" and output.part_sqnr is not None and output.part_sqnr < LOST
    assert 0 <= output.part_low < output.part_high <= 0.5 and output.step > output.part_high - output.part_low
    assert any(text.startswith("columns 4..8 of output 0: ") and "dB" in text for text in report.warnings)
    assert "columns 4..8" in dict(report_facts(report))["accuracy"]
    better = on.compile(Scaled().eval(), samples[0], calibration=samples, quality_cycles=3.0).report
    assert better.outputs[0].part_sqnr > 25 and any("16-bit activations" in note for note in better.notes)


def test_nan_is_never_fine() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.arange(16) >= 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.log_softmax(x.masked_fill(self.mask, float("-inf")), -1)

    samples = [(torch.randn(1, 8, 16),) for _ in range(4)]
    program = on.compile(Masked().eval(), samples[0], calibration=samples)
    (output,) = program.report.outputs
    assert output.wrong == 0 and output.sqnr is not None and output.sqnr > 30
    assert torch.equal(torch.isinf(program.run(*samples[0])[0]), torch.isinf(Masked()(*samples[0])))
    number, nothing = torch.ones(3), torch.tensor([1.0, float("nan"), 1.0])
    (found,) = compare_outputs([number], [nothing])
    assert found.sqnr == -FULL and found.wrong == 1
    assert "NaN" in warnings_of_outputs([found])[0]


def test_outputs_without_decibels_say_what_they_are() -> None:
    ones, integers = torch.ones(4), torch.arange(4)
    found = compare_outputs(
        [(ones, integers, torch.zeros(0), None)] * 2, [(ones, integers * (integers < 2), torch.zeros(0))] * 2
    )
    assert [one.sqnr for one in found] == [None] * 3
    assert "constant" in found[0].note and found[1].agreement == 0.5 and found[2].note == "empty"
    assert worst_sqnr(found) is None
    assert [text for text in warnings_of_outputs(found) if "50.0%" in text and text.startswith("output 1")]


def test_probabilities_of_classes_that_no_sample_has_are_no_loss() -> None:
    wanted = torch.tensor([[0.9989, 0.0001, 0.001], [0.9, 0.0001, 0.0999]])
    (found,) = compare_outputs([wanted], [(wanted * 256).round() / 256])
    assert found.part == "" and not warnings_of_outputs([found])


class Doubled(nn.Module):
    """Changes its input in place, and reads it again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2.0)
        y: torch.Tensor = self.layer(x)
        return y


def test_an_input_that_is_changed_in_place_is_no_output() -> None:
    torch.manual_seed(0)
    samples = [(torch.randn(1, 8),) for _ in range(4)]
    before = [one.clone() for (one,) in samples]
    report = on.compile(Doubled(), samples[0], calibration=samples).report
    assert len(report.outputs) == 1 and report.output_sqnr is not None and report.output_sqnr > 30
    assert all(torch.equal(one, kept) for (one,), kept in zip(samples, before, strict=True))


def test_nan_of_the_float_model_is_a_warning_that_names_its_operator() -> None:
    class Logarithm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.conv(torch.log(torch.relu(x)))

    x = torch.randn(1, 3, 8, 8)
    report = on.compile(Logarithm().eval(), (x,), calibration=[(x,)]).report
    assert report.output_sqnr is None and "NaN in the float model itself" in report.outputs[0].note
    assert any("aten.conv2d" in warning and "gives NaN" in warning for warning in report.warnings)
