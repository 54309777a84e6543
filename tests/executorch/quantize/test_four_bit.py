"""4-bit weights from PyTorch: which layers get them, what PT2E makes of them, and programs that compute them exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.certify.program import prove_program
from openneutron.errors import OptionError
from openneutron.executorch import NeutronQuantizer
from openneutron.executorch.fx import arguments, operator_name
from openneutron.executorch.quantize.choices import Choices, LayerChoice
from openneutron.executorch.quantize.four_bit import GroupedWeights, fits
from openneutron.executorch.quantize.passes._attributes import tensor_of

from .test_quantizer import converted


class Block(nn.Module):
    """A 1x1 convolution, a linear layer, a product with a constant matrix, and a convolution that keeps 8 bits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.spread = nn.Conv2d(8, 32, 3, padding=1)
        self.mix = nn.Conv2d(32, 48, 1)
        self.linear = nn.Linear(48, 64)
        self.matrix = nn.Parameter(torch.randn(64, 40) / 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = torch.relu(self.mix(torch.relu(self.spread(x)))).mean((2, 3))
        return torch.relu(self.linear(pooled)) @ self.matrix


IMAGE = torch.randn(1, 8, 6, 6, generator=torch.Generator().manual_seed(1))
CALIBRATION = [torch.randn(16, 8, 6, 6, generator=torch.Generator().manual_seed(2))]


def weights_of(module: Any) -> dict[str, np.ndarray]:
    """The stored INT8 weights by their operator, output channels first."""
    found = {}
    for node in module.graph.nodes:
        given = arguments(node) if node.op == "call_function" else {}
        for name, axis in (("weight", 0), ("mat2", 1), ("other", 1)):
            source = given.get(name)
            if source is not None and "dequantize_per_channel" in operator_name(source):
                data = tensor_of(module, source.args[0])
                assert data is not None
                key = f"{operator_name(node)} {tuple(data.shape)}"
                found[key] = data.movedim(axis, 0).flatten(1).numpy()
    return found


def has_four_bits(values: np.ndarray, group: int) -> bool:
    parts = [row[at : at + group].astype(int) for row in values for at in range(0, values.shape[1], group)]
    return all(
        any(not (part % factor).any() and np.abs(part // factor).max() <= 7 for factor in range(1, 17))
        for part in parts
    )


def test_linear_layers_and_1x1_convolutions_get_four_bits() -> None:
    quantizer = NeutronQuantizer(weights="int4", group_size=16, per_channel=True)
    found = weights_of(converted(Block().eval(), quantizer, (IMAGE,)))
    four = {name for name, values in found.items() if has_four_bits(values, 16)}
    assert len(found) == 4 and set(found) - four == {"aten.conv2d.default (32, 8, 3, 3)"}


@pytest.mark.parametrize(
    ("shape", "axis", "wanted"),
    [
        ((8, 16), 0, True), ((16, 8), 1, True), ((8, 15), 0, False), ((8, 32, 1, 1), 0, True), ((8, 32, 1), 0, True),
        ((8, 32, 3, 3), 0, False), ((32, 8, 1, 1), 1, False), ((64, 1, 3, 3), 0, False), ((16,), 0, False),
    ],
    ids=str,
)  # fmt: skip
def test_shapes(shape: tuple[int, ...], axis: int, wanted: bool) -> None:
    assert fits(torch.Size(shape), axis) is wanted


@pytest.mark.parametrize("activations", ["int8", "int16"])
@pytest.mark.parametrize("group", [32, 0])
def test_programs_are_smaller_exact_and_proved(activations: str, group: int) -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64)).eval()
    data = [torch.randn(32, 256, generator=torch.Generator().manual_seed(3))]
    options: dict[str, Any] = {"calibration": data, "activations": activations, "dump_intermediates": True}
    coarse = on.compile(model, (data[0][:1],), weights="int4", group_size=group, **options)
    fine = on.compile(model, (data[0][:1],), **options)
    assert coarse.report.totals.weight_bytes < 0.60 * fine.report.totals.weight_bytes
    assert coarse.report.totals.cycles < 0.60 * fine.report.totals.cycles  # one vector: the array waits for weights
    assert coarse.report.output_sqnr is not None and coarse.report.output_sqnr > 18
    assert prove_program(bytes(coarse.data), lambda name: bytes(coarse.intermediates[name]))  # type: ignore[arg-type]
    x = data[0][:4]
    got = np.concatenate([np.asarray(coarse.run(one[None])[0]) for one in x])
    wanted = np.concatenate([coarse.quantized(one[None]).detach().numpy() for one in x])
    assert np.abs(got - wanted).max() <= np.abs(wanted).max() / 50


def test_a_layer_keeps_eight_bits() -> None:
    layers = [{"name": "linear", "weights": "int8"}, {"name": "mix", "group_size": 0}]
    found = weights_of(converted(Block().eval(), NeutronQuantizer(weights="int4", layers=layers), (IMAGE,)))
    four = {name for name, values in found.items() if has_four_bits(values, 64)}
    assert four == {"aten.conv2d.default (48, 32, 1, 1)"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": "int4", "group_size": 48}, "group_size is 48.*16, 32, 64, 128"),
        ({"weights": "int4", "is_qat": True}, "4-bit weights are made after training"),
        ({"weights": "int2"}, "weights is 'int2'"),
        ({"layers": [{"name": "a", "weights": "int3"}]}, "weights is 'int3'"),
        ({"layers": [{"name": "a", "group_size": 1}]}, "group_size is 1"),
    ],
    ids=str,
)
def test_wrong_choices(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        NeutronQuantizer(**given)


def test_adaround_takes_one_kind_of_weights() -> None:
    assert Choices(weights="int4", adaround=True).adaround
    with pytest.raises(OptionError, match="adaround"):
        Choices(layers=(LayerChoice("head", weights="int4"),), adaround=True)


def test_scales_come_from_the_conversion_alone() -> None:
    with pytest.raises(RuntimeError, match="when they are converted"):
        GroupedWeights(torch.int8, axis=0, group_size=32, least_scale=2.0**-20).calculate_qparams()
