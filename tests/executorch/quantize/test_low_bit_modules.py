"""Models that torchao's `quantize_` has changed: their 4-bit weights stay as they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torchao.quantization import (
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup

import openneutron as on
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.executorch.quantize.low_bit_modules import with_plain_weights
from openneutron.litert.grouped_weights import quantize_groups


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32)).eval()


CONFIGS = {
    "8da4w": Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)),
    "4w": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_programs_keep_the_quotients(config: object) -> None:
    model = network()
    quantize_(model, config)
    data = [torch.randn(16, 128, generator=torch.Generator().manual_seed(0))]
    program = on.compile(model, (data[0][:1],), calibration=data)
    plain = on.compile(network(), (data[0][:1],), calibration=data)
    assert program.report.totals.weight_bytes < 0.65 * plain.report.totals.weight_bytes
    assert program.report.output_sqnr is not None and program.report.output_sqnr > 25  # against the 4-bit weights
    assert any("torchao quantized: 2 stay in 4 bits" in note for note in program.report.notes)
    assert type(model[0].weight) is not nn.Parameter, "the caller's model stays as it was"


def test_quotients_and_groups_are_torchaos() -> None:
    model = network()
    quantize_(model, CONFIGS["4w"])
    plain, _, _ = with_plain_weights(model, Choices())
    values, _ = quantize_groups(plain[0].weight.detach().numpy(), 32)
    quotients = model[0].weight.qdata.numpy().reshape(-1, 32).astype(int)
    for mine, theirs in zip(values.reshape(-1, 32).astype(int), quotients, strict=True):
        at = abs(theirs).argmax()
        assert (mine == theirs * (mine[at] // theirs[at])).all()


@pytest.mark.parametrize(
    ("granularity", "size"), [(PerGroup(32), 32), (PerGroup(128), 0), (PerAxis(0), 0), (PerGroup(8), None)], ids=str
)
def test_group_sizes(granularity: PerGroup | PerAxis, size: int | None) -> None:
    model = nn.Sequential(nn.Linear(128, 8))
    quantize_(model, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=granularity))
    _, chosen, _ = with_plain_weights(model, Choices())
    assert [one.group_size for one in chosen.layers] == ([] if size is None else [size])


def test_layers_that_the_user_names_are_stronger() -> None:
    model = network()
    quantize_(model, CONFIGS["4w"])
    own = LayerChoice("2", weights="int8")
    _, chosen, _ = with_plain_weights(model, Choices(layers=(own,)))
    assert chosen.layers[-1] is own and len(chosen.layers) == 3


def test_weights_of_eight_bits_stay_in_eight() -> None:
    model = network()
    quantize_(model, Int8WeightOnlyConfig())
    plain, chosen, notes = with_plain_weights(model, Choices())
    assert chosen.layers == () and type(plain[0].weight) is nn.Parameter and "2 weights" in notes[0]


def test_other_models_are_returned_as_they_are() -> None:
    model, chosen = network(), Choices()
    assert with_plain_weights(model, chosen) == (model, chosen, ())
