"""Trial conversions: with NXP's converter (a fake SDK) what it leaves out goes to the CPU, with ours what does not fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn

from openneutron.executorch.pipeline import build
from openneutron.executorch.run.runtime import load_program
from openneutron.microcode.payload import payloads_of_pte

FAKE = Path(__file__).parents[2] / "compat" / "fake_sdk"
IMAGE = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


@pytest.fixture(autouse=True)
def sdk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("PYTHONPATH", f"{FAKE}{os.pathsep}{FAKE.parents[2]}")
    return monkeypatch


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


def test_converted_whole() -> None:
    built = build(network(), IMAGE, calibration=[IMAGE], converter="nxp")
    assert not [v for v in built.report.nodes if not v.delegated and v.code != "border"]
    (payload,) = payloads_of_pte(built.pte)
    assert payload.converter == "nxp" and payload.input_formats == (1,)


def test_what_is_left_out_is_cut_off_with_its_reason(sdk: pytest.MonkeyPatch) -> None:
    sdk.setenv("FAKE_SDK_MODE", "leftover")
    built = build(network(), IMAGE, calibration=[IMAGE], converter="nxp")
    left = {v.operator: v for v in built.report.nodes if not v.delegated and v.code != "border"}
    assert left and any(v.code.startswith("nxp") and v.reason for v in left.values())


class Wide(nn.Module):
    """Tensors of 600,000 bytes, more than mcxn94x has; all of one is needed for the result where `whole`."""

    def __init__(self, whole: bool) -> None:
        super().__init__()
        self.widen, self.narrow, self.whole = nn.Conv2d(3, 60, 3, padding=1), nn.Conv2d(60, 2, 3, padding=1), whole

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.relu(self.widen(x))
        if self.whole:
            wide = wide.transpose(2, 3)
        y: torch.Tensor = self.narrow(wide)
        return y


@pytest.mark.parametrize("whole", [False, True], ids=["rows of it pass through", "stored whole"])
def test_a_tensor_larger_than_the_memory(whole: bool) -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 3, 100, 100),)
    built = build(Wide(whole), image, calibration=[image], target="mcxn94x")
    left = {v.code for v in built.report.nodes if not v.delegated}
    assert left == ({"border", "too_large"} if whole else {"border"})
    (y,) = load_program(built.pte).run(*image)
    assert (y - built.quantized(*image)).abs().max() <= 0.02


class Turned(nn.Module):
    """A view that is a result too: beside its reader's result there is no room for a copy of it."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(16, 24, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turned = x.reshape(1, 16, 56, 224)
        return turned, self.convolution(turned)


def test_a_copy_that_makes_a_graph_too_large_stays_outside() -> None:
    torch.manual_seed(0)
    image = (torch.rand(1, 16, 112, 112),)
    built = build(Turned(), image, calibration=[image], target="mcxn94x")
    verdicts = {v.operator: (v.delegated, v.code) for v in built.report.nodes}
    assert verdicts["aten.convolution.default"] == (True, "")
    assert verdicts["aten.view_copy.default"] == (False, "too_large")
    turned, y = load_program(built.pte).run(*image)
    assert (turned - image[0].reshape(turned.shape)).abs().max() <= 0.01
    assert (y - built.quantized(*image)[1]).abs().max() <= 0.02


class Apart(nn.Module):
    """A result for every pair of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.relu(part) for part in self.layer(x).split(2, 1))


@pytest.mark.parametrize("budget", [None, 1 << 16])
def test_more_results_than_a_graph_can_have(monkeypatch: pytest.MonkeyPatch, budget: int | None) -> None:
    monkeypatch.setattr("openneutron.compiler.front.memory_limits.MAX_ENDS", 5)
    model, x = Apart().eval(), (torch.linspace(-1, 1, 8).reshape(1, 8),)
    built = build(model, x, calibration=[x], fit_bytes=budget)
    assert len(payloads_of_pte(built.pte)) > 1 and all(v.delegated or v.code == "border" for v in built.report.nodes)
    for got, wanted in zip(load_program(built.pte)(*x), model(*x), strict=True):
        assert torch.allclose(torch.as_tensor(got), wanted, atol=0.02)
