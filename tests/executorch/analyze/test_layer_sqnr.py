"""Layers compared with float: exact where nothing is lost, low where much is, and tied to the right kernels."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.executorch.analyze.layer_sqnr import with_sqnr
from openneutron.executorch.analyze.program_what_ifs import precision_what_ifs
from openneutron.executorch.capture.sources import Loaded
from openneutron.executorch.quantize.accuracy import SAMPLES
from openneutron.executorch.quantize.layer_sqnr import FULL, measure

SHAPE = (1, 3, 8, 8)


class Net(nn.Module):
    """A convolution with a batch norm and no activation, one with, a residual addition, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6())
        self.last = nn.Linear(8 * 64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.last((x + self.second(x)).flatten(1))


def loaded() -> Loaded:
    torch.manual_seed(0)
    samples = [(torch.randn(SHAPE),) for _ in range(8)]
    return Loaded("net", Net().eval(), samples[0], samples)


def decibels(wanted: torch.Tensor, found: torch.Tensor) -> float:
    return float(10 * torch.log10(wanted.double().square().sum() / (wanted - found).double().square().sum()))


def test_every_kernel_is_compared_with_its_own_layer() -> None:
    source = loaded()
    program = on.compile(source.model, source.example_inputs, calibration=source.calibration, per_channel=False)
    report = with_sqnr(program.report, source.model, program.quantized, source.calibration)
    found = {kernel.kernel: kernel.sqnr for kernel in report.kernels}
    assert None not in found.values() and len(report.kernels) == 4
    assert all(20 < kernel.sqnr < 60 for kernel in report.kernels)
    # Noise adds up: the last layer is no closer to float than the first.
    assert report.kernels[-1].sqnr < report.kernels[0].sqnr
    assert report.output_sqnr == program.report.output_sqnr


@torch.no_grad()
def test_a_report_and_its_compile_agree_however_many_samples_there_are() -> None:
    """The last of forty samples are far larger, so another number of samples would give another figure."""
    source = loaded()
    samples = [(torch.randn(SHAPE) * (1 if at < 20 else 8),) for at in range(40)]
    program = on.compile(source.model, source.example_inputs, calibration=samples, quality="plain")
    report = with_sqnr(program.report, source.model, program.quantized, samples)
    assert report.output_sqnr == program.report.output_sqnr
    # Layers are those of the PT2E module, the output is the delivered program's, both on the samples that a compile measures.
    floating, simulated, delivered = (
        torch.cat([run(*one) for one in samples[:SAMPLES]])
        for run in (source.model, program.quantized, lambda x: program.run(x)[0])
    )
    assert report.kernels[-1].sqnr == pytest.approx(decibels(floating, simulated), abs=1e-3)
    assert program.report.output_sqnr == pytest.approx(decibels(floating, delivered), abs=1e-3)
    # The two round apart by a step at most, which at 19 dB is up to half a decibel either way.
    step = program.report.outputs[0].step
    assert (simulated - delivered).abs().max() <= 1.01 * step
    fewer = with_sqnr(program.report, source.model, program.quantized, samples[:2])
    assert fewer.kernels[-1].sqnr != pytest.approx(program.report.output_sqnr, abs=0.2)


def test_a_layer_with_a_bad_range_stands_out() -> None:
    """One weight a hundred times the others leaves few steps for those, in that layer only."""
    source = loaded()
    with torch.no_grad():
        source.model.second[0].weight[0, 0, 0, 0] = 100 * source.model.second[0].weight.abs().max()
    options = {"per_channel": False, "quality": "plain"}
    program = on.compile(source.model, source.example_inputs, calibration=source.calibration, **options)
    report = with_sqnr(program.report, source.model, program.quantized, source.calibration)
    first, second = report.kernels[:2]
    assert second.sqnr < first.sqnr - 10
    per_channel, wide = precision_what_ifs(source, {"target": "imxrt700", **options}, report)
    assert (per_channel.option, wide.option) == ("--per-channel", "--activations int16")
    assert per_channel.whole and per_channel.cycles > 0
    assert report.output_sqnr + 3 < min(per_channel.output_sqnr, wide.output_sqnr + 3)


def test_what_equals_float_is_full_and_not_infinite() -> None:
    source = loaded()
    floating = torch.export.export(source.model, source.example_inputs).module()
    _, output = measure(source.model, floating, source.calibration)
    assert output == FULL
