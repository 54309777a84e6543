"""What a model writes out is recognised by what it computes, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.nn import functional

from openneutron.executorch.fx import operator_name
from openneutron.executorch.quantize.passes import recognize
from openneutron.executorch.quantize.passes.recognize.recognize_activation import recognize_activation
from openneutron.executorch.quantize.passes.recognize.recognize_layer_norm import recognize_layer_norm
from openneutron.executorch.quantize.passes.recognize.recognize_softmax import recognize_softmax
from tests.executorch.harness import Function

Written = Callable[[torch.Tensor], torch.Tensor]
SHAPE = (2, 5, 12)
WEIGHT, BIAS = torch.linspace(0.5, 2, 12), torch.linspace(-1, 1, 12)
ZERO = torch.tensor(0.0)


def captured(written: Written, shape: tuple[int, ...] = SHAPE) -> GraphModule:
    """The function between two linear layers, so that neither end of the graph is special."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(shape[-1], shape[-1]), nn.Linear(shape[-1], 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(written(self.first(x)))

    return torch.export.export(Network().eval(), (torch.randn(shape),)).module()


def operators(module: GraphModule) -> list[str]:
    return [name for node in module.graph.nodes if (name := operator_name(node)) and "linear" not in name]


def recognised(written: Written, step: Callable[[GraphModule], int], *expected: str) -> GraphModule:
    module = captured(written)
    x = torch.randn(SHAPE)
    before = module(x)
    assert step(module) == 1
    module.graph.lint()
    module.recompile()
    assert operators(module) == list(expected)
    torch.testing.assert_close(module(x), before, rtol=1e-5, atol=2e-6)
    return module


def cubic(x: torch.Tensor) -> torch.Tensor:
    return x + 0.044715 * (x * x * x)


ACTIVATIONS: dict[str, tuple[Written, str]] = {
    "gelu": (lambda x: x * 0.5 * (1 + torch.erf(x / 2**0.5)), "aten.gelu.default"),
    "gelu, half last": (lambda x: (torch.erf(x * 0.70710678) + 1) * x * 0.5, "aten.gelu.default"),
    "gelu by tanh": (lambda x: x * (0.5 * (1 + torch.tanh(0.79788456 * cubic(x)))), "aten.gelu.default"),
    "gelu by pow": (
        lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x.pow(3)))), "aten.gelu.default"
    ),
    "silu": (lambda x: x / (1 + torch.exp(-x)), "aten.silu.default"),
    "sigmoid": (lambda x: 1 / (1 + torch.exp(-x)), "aten.sigmoid.default"),
    "hardswish": (lambda x: x * functional.relu6(x + 3) / 6, "aten.hardswish.default"),
    "hardswish by clamp": (lambda x: torch.clamp(x + 3, 0, 6) * x * (1 / 6), "aten.hardswish.default"),
    "hardsigmoid": (lambda x: torch.clamp(x / 6 + 0.5, 0, 1), "aten.hardsigmoid.default"),
    "mish": (lambda x: x * torch.tanh(functional.softplus(x)), "aten.mish.default"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_written_out_is_that_activation(name: str) -> None:
    written, expected = ACTIVATIONS[name]
    recognised(written, recognize_activation, expected)


def test_the_two_forms_of_gelu_are_told_apart() -> None:
    module = recognised(ACTIVATIONS["gelu by tanh"][0], recognize_activation, "aten.gelu.default")
    (node,) = [node for node in module.graph.nodes if operator_name(node) == "aten.gelu.default"]
    assert node.kwargs == {"approximate": "tanh"}


@pytest.mark.parametrize(
    "written",
    [
        lambda x: x * 0.5 * (1 + torch.tanh(0.8 * cubic(x))),  # another constant
        lambda x: x * torch.sigmoid(1.702 * x),  # the quick form of gelu, which is no operator
        lambda x: x * torch.sigmoid(x.flip(-1)),  # the gate is another tensor
        lambda x: torch.clamp(x + 3, 0, 5) * x / 6,
        torch.sigmoid,
    ],
)
def test_what_is_no_such_function_stays(written: Written) -> None:
    module = captured(written)
    names = operators(module)
    assert recognize_activation(module) == 0 and operators(module) == names


def test_a_value_that_is_read_elsewhere_keeps_the_whole() -> None:
    def gates(x: torch.Tensor) -> torch.Tensor:
        gate = 1 + torch.erf(x / 2**0.5)
        return x * 0.5 * gate + gate.flip(-1)

    assert recognize_activation(captured(gates)) == 0


SOFTMAX: dict[str, Written] = {
    "last": lambda x: (e := torch.exp(x - x.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True),
    "middle": lambda x: (e := torch.exp(x - x.amax(1, keepdim=True))) * e.sum(1, keepdim=True).reciprocal(),
    "views": lambda x: (
        (e := torch.exp(x - x.amax(2).unsqueeze(2).expand(2, 5, 12))) / e.sum(2).reshape(2, 5, 1).expand(2, 5, 12)
    ),
    "no maximum": lambda x: (e := torch.exp(x)) / e.sum(-1, keepdim=True),
}


@pytest.mark.parametrize("name", SOFTMAX)
def test_exponentials_over_their_sum_are_a_softmax(name: str) -> None:
    recognised(SOFTMAX[name], recognize_softmax, "aten.softmax.int")


def test_exponentials_over_another_sum_are_none() -> None:
    assert recognize_softmax(captured(lambda x: (e := torch.exp(x)) / e.sum((1, 2), keepdim=True))) == 0
    assert recognize_softmax(captured(lambda x: (e := torch.exp(x)) / (1 + e.sum(-1, keepdim=True)))) == 0


def flax(x: torch.Tensor) -> torch.Tensor:
    mean = x.sum(-1) * (1 / 12)
    variance = torch.maximum(ZERO, (x * x).sum(-1) * (1 / 12) - mean * mean)
    scale = torch.rsqrt(variance.reshape(2, 5, 1).expand(2, 5, 1) + 1e-6) * WEIGHT
    return (x - mean.reshape(2, 5, 1)) * scale + BIAS


def classic(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5)


def moments(x: torch.Tensor) -> torch.Tensor:
    variance = x.var(-1, keepdim=True, unbiased=False)
    return WEIGHT * ((x - x.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt()) + BIAS


def channels(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)


NORM = ("mean.dim", "sub.Tensor", "mul.Tensor", "sum.dim_IntList", "mul.Tensor", "add.Tensor", "rsqrt.default",
        "mul.Tensor")  # fmt: skip


@pytest.mark.parametrize(("written", "affine"), [(flax, True), (classic, False), (moments, True), (channels, False)])
def test_a_value_over_its_deviation_is_a_layer_norm(written: Written, affine: bool) -> None:
    names = (*NORM, "mul.Tensor", "add.Tensor") if affine else NORM
    recognised(written, recognize_layer_norm, *(f"aten.{name}" for name in names))


@pytest.mark.parametrize(
    "written",
    [
        lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5),  # no mean is taken away
        lambda x: (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5),
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + 1e-3),
        lambda x: (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-3),
    ],
)
def test_other_norms_stay(written: Written) -> None:
    assert recognize_layer_norm(captured(written)) == 0


def test_training_keeps_the_norms_that_a_model_writes_itself() -> None:
    module = captured(lambda x: classic(x) * 2.0)
    assert any("sqrt" in name for name in operators(recognize(module, is_qat=True)))


def test_written_out_comes_as_close_to_float_as_the_operators() -> None:
    from openneutron.executorch.pipeline import quantize

    torch.manual_seed(0)
    samples = [(torch.randn(SHAPE),) for _ in range(4)]
    written = Function(lambda x: flax(x).softmax(-1))
    own = Function(lambda x: functional.layer_norm(x, [12], WEIGHT, BIAS, 1e-6).softmax(-1))
    ours, best = (quantize(model, samples[0], samples).sqnr[0] for model in (written, own))
    assert abs(ours - best) < 0.5
