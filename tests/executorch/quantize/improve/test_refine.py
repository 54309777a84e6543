"""Refining a quantized network: its layers keep their means and lose noise; what cannot be refined is said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.errors import UnsupportedError
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.improve import refine as module_under_test
from openneutron.executorch.quantize.improve.refine import refine
from openneutron.executorch.quantize.pt2e import calibrate, convert, prepare

IMAGES = [(torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(at)).cumsum(-1),) for at in range(24)]


def network() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128, 4),
    )
    apart = torch.logspace(-2, 1, 8)  # too far for one scale
    model[2].weight.data *= apart.reshape(-1, 1, 1, 1)
    model[5].weight.data /= apart.repeat_interleave(16)
    return model.eval()


def quantized(per_channel: bool = False) -> tuple[Any, Any, nn.Module]:
    model = network()
    prepared = prepare(torch.export.export(model, IMAGES[0]), NeutronQuantizer(per_channel=per_channel))
    calibrate(prepared, IMAGES)
    return convert(copy.deepcopy(prepared)), prepared, model


def noise(module: Any, model: nn.Module) -> float:
    with torch.no_grad():
        return sum(float((module(*one) - model(*one)).square().sum()) for one in IMAGES)


@pytest.mark.parametrize(
    "how", [{"correct_bias": True}, {"adaround": True}, {"correct_bias": True, "adaround": True}], ids=str
)
@pytest.mark.parametrize("per_channel", [False, True])
def test_there_is_less_noise(how: dict[str, bool], per_channel: bool) -> None:
    module, prepared, model = quantized(per_channel)
    before = noise(module, model)
    found = refine(module, prepared, IMAGES, **how)
    assert noise(module, model) < before
    assert (found.corrected, found.rounded) == (3 * how.get("correct_bias", 0), 3 * how.get("adaround", 0))
    assert len(found.notes()) == len(how)


def test_the_mean_of_the_output_is_the_float_networks() -> None:
    module, prepared, model = quantized()
    refine(module, prepared, IMAGES, correct_bias=True)
    with torch.no_grad():
        apart = torch.cat([module(*one) - model(*one) for one in IMAGES]).mean(0)
        spread = torch.cat([model(*one) for one in IMAGES]).std(0)
    assert bool((apart.abs() < 0.05 * spread).all())


def test_a_layer_with_too_many_inputs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_under_test, "LARGEST", 100)
    module, prepared, _ = quantized()
    found = refine(module, prepared, IMAGES[:2], adaround=True)
    assert found.rounded == 2 and found.too_large == ("linear",) and "linear: rounded to nearest" in found.notes()[-1]


def test_few_samples_where_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_under_test, "MEMORY", 1)
    module, prepared, _ = quantized()
    assert refine(module, prepared, IMAGES, correct_bias=True).corrected == 3


class _State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("state", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.copy_(self.layer(x + self.state))
        return self.state * 1.0


def test_a_model_with_state_is_refused() -> None:
    program = torch.export.export(_State().eval(), (torch.ones(1, 4),)).module(check_guards=False)
    with pytest.raises(UnsupportedError, match=r"keeps state in state.*leave correct_bias"):
        refine(program, program, [(torch.ones(1, 4),)], correct_bias=True)
