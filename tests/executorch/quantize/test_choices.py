"""A quantization file: read, written, obeyed layer by layer, and every mistake in it named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import OpenNeutronError
from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.choices import Choices, LayerChoice, read_choices, to_toml

from .test_quantizer import converted, parameters

FULL = Choices(
    per_channel=True, observer="percentile", percentile=99.5, exclude=("Softmax",), precision=("head=int16",),
    equalize=True, correct_bias=True,
    layers=(
        LayerChoice("features.3", activations="int16", per_channel=False),
        LayerChoice("classifier", observer="minmax", exclude=True),
    ),
)  # fmt: skip


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "q.toml"
    file.write_text(
        to_toml(FULL, [{"change": "head in 16 bits", "sqnr": 31.5, "kept": True}], head="two\nlines"), "utf-8"
    )
    assert Choices.of({"quantization": str(file)}) == FULL
    assert file.read_text("utf-8").startswith("# two\n# lines\n") and "[[tried]]" in file.read_text("utf-8")


def test_options_beside_a_file_are_stronger() -> None:
    found = Choices.of({"quantization": {"observer": "minmax", "per_channel": True}, "observer": "percentile"})
    assert (found.observer, found.per_channel) == ("percentile", True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"per_chanel": True}, "unknown option 'per_chanel'.*per_channel"),
        ({"observer": "guess"}, "observer is 'guess'"),
        ({"target": "imx95"}, "unknown option 'target'"),
        ({"percentile": 30}, "percentile is 30"),
        ({"precision": ["head=int4"]}, "int4"),
        ({"layer": {"name": "x"}}, "layer is no list"),
        ({"layer": [{"activations": "int16"}]}, "layer 1: it has no name"),
        ({"layer": [{"name": "a"}, {"name": "b", "bits": 16}]}, r"layer 2 \(b\): unknown key 'bits'"),
        ({"layer": [{"name": "a", "activations": "int4"}]}, "activations is 'int4'"),
        ({"layer": [{"name": "a", "observer": "?"}]}, "observer is"),
        ({"layer": [{"name": "a", "per_channel": 1}]}, "per_channel is 1"),
        ({"layer": [{"name": "a", "percentile": "high"}]}, "percentile is 'high'"),
    ],
    ids=str,
)
def test_mistakes_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OpenNeutronError, match=message):
        read_choices(given)


@pytest.mark.parametrize("text", ["= 3", "\udcff"])
def test_a_file_that_is_no_toml(text: str, tmp_path: Path) -> None:
    file = tmp_path / "q.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(OpenNeutronError, match=r"q\.toml: no TOML"):
        read_choices(str(file))


def test_layers_have_their_own_scales_types_and_observers() -> None:
    layers = [
        {"name": "0", "per_channel": True, "percentile": 99.0},
        {"name": "2", "activations": "int16"},
        {"name": "4", "exclude": True},
    ]
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1))
    quantizer = NeutronQuantizer(observer="minmax", layers=layers, per_channel=False)
    module = converted(model, quantizer)
    convolutions = [node for node in module.graph.nodes if operator_name(node) == "aten.conv2d.default"]
    assert ["per_channel" in str(node.args[1].target) for node in convolutions] == [True, False, False]
    assert [node.args[1].op for node in convolutions] == ["call_function", "call_function", "get_attr"]
    types = [arguments["dtype"] for arguments in [parameters(module, "aten.relu.default")]]
    assert types == [torch.int8] and quantizer._specs(convolutions[0]).percentile == 99.0
    assert torch.int16 in {node.args[5] for node in module.graph.nodes if "quantize_per_tensor" in str(node.target)}


def test_compile_obeys_a_file_and_methods(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)).eval()
    images = torch.randn(8, 3, 8, 8)
    file = tmp_path / "q.toml"
    file.write_text(to_toml(Choices(equalize=True, correct_bias=True, adaround=True)), "utf-8")
    program = on.compile(model, (images[:1],), calibration=[images], quantization=file)
    assert set(program.report.notes) >= {"1 groups of layers equalized", "2 biases corrected"}
    with pytest.raises(OpenNeutronError, match="correct_bias: they are for quantization after training"):
        on.compile(model, (images[:1],), train=print, correct_bias=True)
    with pytest.raises(OpenNeutronError, match="adaround: recipe cortex_m has a quantizer of its own"):
        on.compile(model, (images[:1],), calibration=[images], recipe="cortex_m", adaround=True)
