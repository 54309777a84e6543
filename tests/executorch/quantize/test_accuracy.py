"""Every compile says how far its outputs are from float, and warns when that is too far."""

from __future__ import annotations

import torch
from torch import nn

import openneutron as on
from openneutron.executorch.quantize.accuracy import FULL, output_sqnr


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
    report = on.compile(Outlier().eval(), image, calibration=[image]).report
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
