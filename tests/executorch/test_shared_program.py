"""A program that came through bytes compiles to what the model itself compiles to."""

from __future__ import annotations

import torch

import openneutron
from openneutron.executorch.capture.sources import Loaded
from openneutron.executorch.shared_program import program_of, quantize_to_bytes


def test_the_same_program_for_any_target() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 4)).eval()
    samples = [(torch.rand(1, 8),) for _ in range(3)]
    data, sqnr = quantize_to_bytes(Loaded("net", model, samples[0], samples))
    direct = openneutron.compile(model, samples[0], calibration=samples, name="net", target="mcxn94x")
    shared = openneutron.compile(program_of(data), name="net", target="mcxn94x")
    assert shared.report.totals == direct.report.totals and sqnr == direct.report.output_sqnr
    assert torch.equal(shared.run(*samples[1])[0], direct.run(*samples[1])[0])
    again, none = quantize_to_bytes(Loaded("net", program_of(data)))
    assert none is None and len(again) > 0
