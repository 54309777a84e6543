from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import ComposableQuantizer

from openneutron.errors import OptionError
from openneutron.executorch import NeutronQuantizer, NeutronTargetSpec
from openneutron.executorch.fx import arguments, is_dequantize, is_quantize, operator_name
from openneutron.executorch.quantize.specs import OBSERVERS

IMAGE = (torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),)


def converted(model: nn.Module, quantizer: Any, inputs: tuple[torch.Tensor, ...] = IMAGE, train: bool = False) -> Any:
    exported = torch.export.export(model.train() if train else model.eval(), inputs).module()
    prepared = prepare_qat_pt2e(exported, quantizer) if train else prepare_pt2e(exported, quantizer)
    prepared(*inputs)
    return convert_pt2e(prepared)


def parameters(module: Any, name: str) -> dict[str, Any]:
    """Arguments of the quantize behind the first node of an operator."""
    node = next(node for node in module.graph.nodes if operator_name(node) == name)
    (user,) = [user for user in node.users if is_quantize(user)]
    return arguments(user)


def names(module: Any) -> list[str]:
    return [operator_name(node) for node in module.graph.nodes if node.op == "call_function"]


def test_training_scales_the_outputs_of_a_transposed_convolution() -> None:
    """Its output channels are the weights' second dimension."""
    module = converted(nn.ConvTranspose2d(3, 5, 2), NeutronQuantizer(is_qat=True, per_channel=True), train=True)
    (weight,) = (node for node in module.graph.nodes if is_dequantize(node) and "axis" in arguments(node))
    assert arguments(weight)["axis"] == 1
    assert getattr(module, str(arguments(weight)["scales"].target)).shape == (5,)


def test_activations_and_weights() -> None:
    module = converted(nn.Conv2d(3, 4, 3), NeutronQuantizer(NeutronTargetSpec("imxrt700"), per_channel=False))
    given = parameters(module, "aten.conv2d.default")
    assert (given["quant_min"], given["quant_max"], given["dtype"]) == (-128, 127, torch.int8)
    weights = [node for node in module.graph.nodes if is_dequantize(node) and node.args[0].op == "get_attr"]
    assert [(arguments(node)["quant_min"], arguments(node)["zero_point"]) for node in weights] == [(-127, 0)]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [({}, [True, False]), ({"per_channel": True}, [True, True]), ({"per_channel": False}, [False, False])],
    ids=["default", "per_channel", "per_tensor"],
)
def test_convolutions_have_a_scale_per_channel_unless_told_otherwise(how: dict[str, Any], wanted: list[bool]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(36, 5))
    module = torch.export.export(model.eval(), (torch.rand(1, 3, 5, 5),)).module()
    prepared = prepare_pt2e(module, NeutronQuantizer(**how))
    prepared(torch.rand(1, 3, 5, 5))
    found = convert_pt2e(prepared)
    weights = [node for node in found.graph.nodes if is_dequantize(node) and node.args[0].op == "get_attr"]
    assert ["per_channel" in operator_name(node) for node in weights] == wanted


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6(), nn.Hardtanh(), nn.ReLU(inplace=True)])
def test_activation_is_quantized_with_its_layer(activation: nn.Module) -> None:
    module = converted(nn.Sequential(nn.Conv2d(3, 4, 3), activation), NeutronQuantizer())
    convolution = next(node for node in module.graph.nodes if operator_name(node) == "aten.conv2d.default")
    (user,) = convolution.users
    assert not is_quantize(user)


@pytest.mark.parametrize(
    "function, name, scale, zero",
    [
        (lambda x: torch.softmax(x, 1), "aten.softmax.int", 1 / 256, -128),
        (torch.sigmoid, "aten.sigmoid.default", 1 / 256, -128),
        (torch.tanh, "aten.tanh.default", 1 / 128, 0),
    ],
)
def test_fixed_parameters(function: Any, name: str, scale: float, zero: int) -> None:
    given = parameters(converted(_Module(function), NeutronQuantizer()), name)
    assert (given["scale"], given["zero_point"]) == (scale, zero)


def test_shape_operators_share_their_inputs_parameters() -> None:
    module = converted(_Module(lambda x: torch.relu(x).flatten(1).unsqueeze(1)), NeutronQuantizer())
    found = {(arguments(n)["scale"], arguments(n)["zero_point"]) for n in module.graph.nodes if is_quantize(n)}
    assert len(found) == 2  # the input's, and the one of everything behind relu


def test_fixed_parameters_do_not_clip_what_is_concatenated_with_them() -> None:
    module = converted(_Module(lambda x: torch.cat([torch.sigmoid(x), x * 5], 1)), NeutronQuantizer())
    assert parameters(module, "aten.cat.default")["scale"] > 1 / 64


def test_dead_channels_have_a_scale_floor() -> None:
    layer = nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        layer.weight[0] = 0
    module = converted(layer, NeutronQuantizer(per_channel=True))
    scales = next(value for name, value in module.named_buffers() if "scale" in name)
    assert scales.min() >= 2.0**-20


@pytest.mark.parametrize("pattern", ["conv2d", "aten.conv2d.default", "0", "Conv2d", "torch.nn.modules.conv.*"])
def test_excluded_stays_float(pattern: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid())
    module = converted(model, NeutronQuantizer(exclude=[pattern]))
    convolution = next(node for node in module.graph.nodes if operator_name(node) == "aten.conv2d.default")
    assert not is_dequantize(convolution.args[0])
    sigmoid = next(node for node in module.graph.nodes if operator_name(node) == "aten.sigmoid.default")
    assert is_dequantize(sigmoid.args[0])


@pytest.mark.parametrize("bias", [True, False])
def test_training(bias: bool) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4), nn.ReLU())
    module = converted(model, NeutronQuantizer(is_qat=True), train=True)
    assert "aten.batch_norm.default" not in names(module)
    assert any(is_quantize(node) for node in module.graph.nodes)


def test_composes_with_another_quantizer() -> None:
    first = NeutronQuantizer(exclude=["aten.sigmoid.default"])
    module = converted(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sigmoid()), ComposableQuantizer([first, NeutronQuantizer()])
    )
    assert parameters(module, "aten.sigmoid.default")["scale"] == 1 / 256


@pytest.mark.parametrize("arguments_, part", [({"observer": "guess"}, "guess"), ({"exclude": "conv"}, "give a list")])
def test_wrong_arguments(arguments_: dict[str, Any], part: str) -> None:
    with pytest.raises(OptionError, match=part):
        NeutronQuantizer(**arguments_)


@pytest.mark.parametrize("observer", ["histogram", "minmax", "moving_average", "percentile"])
def test_observers(observer: str) -> None:
    module = converted(nn.Conv2d(3, 4, 3), NeutronQuantizer(observer=observer))
    assert parameters(module, "aten.conv2d.default")["scale"] > 0


def test_imports_with_torch_alone() -> None:
    code = (
        "import sys\n"
        "for name in ('executorch', 'ai_edge_litert', 'ortools', 'eiq_neutron_sdk'): sys.modules[name] = None\n"
        "from openneutron.executorch import NeutronQuantizer\n"
        "NeutronQuantizer()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=None)


class _Module(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def test_the_percentile_observer_leaves_outliers_out() -> None:
    observer = OBSERVERS["percentile"](dtype=torch.int8, quant_min=-128, quant_max=127)
    x = torch.linspace(-1, 1, 100_000)
    x[0] = 5.0
    observer(x)
    scale, zero_point = observer.calculate_qparams()
    assert 1.9 / 255 < float(scale) < 2.1 / 255 and abs(int(zero_point)) <= 2
