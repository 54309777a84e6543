"""Every rule yields what ExecuTorch's own decompositions and passes yield, node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch import nn
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.node import map_arg
from torch.nn import functional

from openneutron.executorch.edge.direct import direct_edge
from openneutron.executorch.edge.draft import Unknown
from openneutron.executorch.edge.rules import UNCHANGED
from openneutron.executorch.fx import origin, source_line, value_of

Function = Callable[..., Any]


def ramp(*shape: int) -> torch.Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)


class Each(nn.Module):
    """Functions of one image, each with its own result."""

    def __init__(self, functions: Sequence[Function]) -> None:
        super().__init__()
        self.functions = functions
        self.kernel, self.deep = nn.Buffer(ramp(5, 4, 3, 3)), nn.Buffer(ramp(4, 1, 3, 3))
        self.back, self.line = nn.Buffer(ramp(4, 5, 3, 3)), nn.Buffer(ramp(5, 4, 3))
        self.matrix, self.bias, self.index = nn.Buffer(ramp(6, 8)), nn.Buffer(ramp(6)), nn.Buffer(torch.tensor([2, 0]))

    def forward(self, input: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(function(self, input) for function in self.functions)


KNOWN: list[Function] = [
    lambda m, x: functional.conv2d(x, m.kernel, None, 2, 1),
    lambda m, x: functional.conv2d(x, m.deep, None, (1, 2), (0, 1), 1, 4),
    lambda m, x: functional.conv_transpose2d(x, m.back, None, 2, 1, 1),
    lambda m, x: functional.conv1d(x[:, :, 0], m.line, None, 1, 2, 2),
    lambda m, x: functional.linear(x[0, 0], m.matrix),
    lambda m, x: functional.linear(x[0, 1], m.matrix, m.bias),
    lambda m, x: torch.flatten(x, 1),
    lambda m, x: x.relu().view(1, -1),
    lambda m, x: x.relu().reshape(2, -1),
    lambda m, x: x.relu().reshape(1, 4, 8, 8),
    lambda m, x: x.unflatten(1, (2, 2)),
    lambda m, x: functional.linear(x, m.matrix) * functional.linear(x, m.matrix, m.bias),
    lambda m, x: functional.conv_transpose1d(x[:, :, 0], m.back[:, :, 0], None, 2, 1, 1),
    lambda m, x: x.clone().detach(),
    lambda m, x: x.permute(0, 2, 3, 1).clone(),
    lambda m, x: x.permute(0, 2, 3, 1).clone(memory_format=torch.contiguous_format),
    lambda m, x: x.clone(memory_format=torch.contiguous_format),
    lambda m, x: x.permute(0, 2, 3, 1).clone(memory_format=torch.preserve_format),
    lambda m, x: torch.ops.aten.alias(x.tanh()),
    lambda m, x: x.squeeze(0).unsqueeze(-1).squeeze((0, -1)).squeeze(),
    lambda m, x: x.expand(3, -1, -1, -1) * x[:, :1].expand_as(x),
    lambda m, x: x.narrow(1, 1, 2),
    lambda m, x: torch.stack([x, x.relu()], 1).mean() + torch.stack([x, x.relu()]).mean(),
    lambda m, x: torch.concat([x, x.relu()], -1),
    lambda m, x: functional.relu6(x) - torch.clamp_min(x, 0.1) - torch.clamp_max(x, 0.1),
    lambda m, x: x[0, 0].t(),
    lambda m, x: x[0] @ x[0].transpose(-1, -2),
    lambda m, x: x.permute(0, 2, 3, 1).reshape(1, -1),
    lambda m, x: (x.permute(0, 2, 3, 1) + x.permute(0, 2, 3, 1).relu()).flatten(1),
    lambda m, x: x.view(1, 2, 2, 8, 8).transpose(1, 2).reshape(1, 4, 8, 8),
    lambda m, x: x.unsqueeze(-1),
    lambda m, x: x.select(1, -1),
    lambda m, x: x[:, 1:3, ::2, -2:],
    lambda m, x: torch.cat([x, x.relu()], 1),
    lambda m, x: functional.max_pool2d(x, 3, 2, 1),
    lambda m, x: functional.max_pool2d(x, 2, ceil_mode=True),
    lambda m, x: functional.avg_pool2d(x, 3, 2, 1, False, False),
    lambda m, x: functional.avg_pool2d(x, (3, 2), stride=(2, 1)),
    lambda m, x: functional.adaptive_avg_pool2d(x, 1),
    lambda m, x: functional.adaptive_avg_pool1d(x[0], 1),
    lambda m, x: x.mean((2, 3)),
    lambda m, x: x.permute(0, 2, 3, 1).mean([1, 2], keepdim=True),
    lambda m, x: x.sum((1, 2), True),
    lambda m, x: x.amax((2, 3), True) - x.amin(1),
    lambda m, x: functional.softmax(x.permute(0, 2, 3, 1), 1).relu(),
    lambda m, x: functional.pad(x, (1, 1, 2, 2)),
    lambda m, x: functional.pad(x.permute(0, 2, 3, 1), (1, 0), value=-3.0),
    lambda m, x: functional.interpolate(x, scale_factor=2),
    lambda m, x: functional.interpolate(x, size=(15, 15), mode="bilinear", align_corners=True),
    lambda m, x: torch.add(x, x.relu(), alpha=2) * torch.maximum(x, x.sigmoid()) / torch.minimum(x, x.tanh()),
    lambda m, x: x * x.mean((2, 3), keepdim=True),
    lambda m, x: functional.hardtanh(x, -2, 2) - functional.hardtanh(x),
    lambda m, x: functional.leaky_relu(x, 0.2) - functional.leaky_relu(x),
    lambda m, x: functional.gelu(x, approximate="tanh") - functional.gelu(x),
    lambda m, x: x.clamp(min=0.5) - x.clamp(-1, 1),
    lambda m, x: functional.elu(x) - functional.elu(x, 0.5),
    lambda m, x: x @ x.transpose(-1, -2),
    lambda m, x: x.permute(0, 2, 1, 3) @ x.permute(0, 2, 3, 1),
    lambda m, x: x[0, 0] @ x[0, 1],
    lambda m, x: x.relu() @ m.matrix.t(),
    lambda m, x: x @ x[:, :1],
    lambda m, x: x[0] @ torch.cat([x, x.relu()]),
    lambda m, x: x.permute(0, 2, 3, 1).contiguous(),
    lambda m, x: x.permute(0, 2, 3, 1).reshape_as(x),
    lambda m, x: torch.bmm(x[0], x[0]),
    lambda m, x: torch.addmm(x[0, 0], x[0, 1], torch.mm(x[0, 2], x[0, 3])),
    lambda m, x: x.pow(2) + x.pow(0.5),
    lambda m, x: x.repeat(1, 2, 1, 1).flip(1).cumsum(1),
    lambda m, x: torch.index_select(x, 1, m.index).argmax(1),
    lambda m, x: functional.embedding(m.index, m.matrix),
    lambda m, x: m.matrix[m.index] * x.relu()[:, :, m.index],
    lambda m, x: torch.ops.aten.index_put(x, [None, None, m.index], x[:, :, :2].relu()),
    lambda m, x: x.argmin(1, keepdim=True),
    lambda m, x: (torch.ops.aten._assert_tensor_metadata(x, dtype=torch.float32), x.relu())[1],
    *(
        lambda m, x, name=name: getattr(torch, name)(x)
        for name in (
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "expm1",
            "floor", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sign", "sin", "sinh",
            "sqrt", "tan", "trunc",
        )
    ),
]  # fmt: skip

UNKNOWN: dict[str, Function] = {
    "of a number": lambda m, x: x + 1,
    "of several types": lambda m, x: x + m.index[0],
    "to the same shape": lambda m, x: x.relu().flatten(0, 0),
    "aten.slice of everything": lambda m, x: torch.ops.aten.slice(x.relu(), 1, 0, 4),
    "aten.narrow of everything": lambda m, x: x.relu().narrow(1, 0, 4),
    "aten.stack behind the last": lambda m, x: torch.stack([x, x], -1),
    "aten.clone to an order": lambda m, x: x.clone(memory_format=torch.channels_last),
    "aten.conv2d.padding": lambda m, x: functional.conv2d(x, m.kernel, padding="same"),
    "aten.conv2d.default of this shape": lambda m, x: functional.conv2d(x[0], m.kernel),
    "aten.linear of this shape": lambda m, x: functional.linear(x.permute(0, 1, 3, 2), m.matrix),
    "aten.adaptive_avg_pool2d to this": lambda m, x: functional.adaptive_avg_pool2d(x, 2),
    "aten.adaptive_avg_pool1d to this": lambda m, x: functional.adaptive_avg_pool1d(x[0], 2),
    "aten.pad by reflect": lambda m, x: functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "aten.matmul of these": lambda m, x: x[0, 0] @ x,
    "aten.contiguous of this": lambda m, x: x.relu().contiguous(memory_format=torch.channels_last),
    "aten.reshape_as what": lambda m, x: x.reshape_as(x.relu().view(4, 64)),
    "to another type": lambda m, x: functional.softmax(x, 1, dtype=torch.float64),
    "aten.log_softmax.int": lambda m, x: functional.log_softmax(x, 1),
}


def exported(functions: Sequence[Function], *, channels_last: bool = False) -> ExportedProgram:
    image = ramp(1, 4, 8, 8)
    return torch.export.export(
        Each(functions).eval(), (image.to(memory_format=torch.channels_last) if channels_last else image,)
    )


def shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    return (tuple(value.shape), value.dtype, value.stride()) if isinstance(value, torch.Tensor) else value


def described(node: Node) -> tuple[Any, ...]:
    """All that anybody reads of a node."""
    arguments = map_arg((node.args, dict(node.kwargs)), lambda one: f"%{one.name}")
    own = (origin(node), source_line(node), node.meta.get("debug_handle")) if node.op == "call_function" else ()
    return node.op, node.name, node.target, repr(arguments), shown(value_of(node)), own


def compare(program: ExportedProgram, again: ExportedProgram) -> None:
    """`again` is the same program, because lowering changes programs in place."""
    made = direct_edge(program, ())
    wanted = to_edge(again, compile_config=EdgeCompileConfig(_check_ir_validity=False)).exported_program()
    assert [described(node) for node in made.graph.nodes] == [described(node) for node in wanted.graph.nodes]
    assert made.graph_signature == wanted.graph_signature
    assert list(made.state_dict) == list(wanted.state_dict)


def test_every_rule_does_what_executorch_does() -> None:
    compare(exported(KNOWN), exported(KNOWN))


def test_in_channels_last_too() -> None:
    functions = [
        lambda m, x: functional.conv2d(x, m.kernel).relu() + x.mean((1, 2, 3), keepdim=True),
        lambda m, x: functional.max_pool2d(torch.cat([x, x.relu()], 1), 2),
        lambda m, x: functional.interpolate(functional.pad(x, (1, 1)), scale_factor=2),
        lambda m, x: x.relu().flatten(1),
        lambda m, x: x.permute(0, 2, 3, 1)[:, 1:].sigmoid(),
    ]
    compare(exported(functions, channels_last=True), exported(functions, channels_last=True))


def test_all_that_is_said_to_stay_is_tried_here() -> None:
    tried = {str(node.target) for node in exported(KNOWN).graph.nodes}
    quantization = {name for name in UNCHANGED if name.startswith("quantized_decomposed.")}
    inner = {
        "aten.convolution.default",
        "aten._softmax.default",
        "aten.constant_pad_nd.default",
    }  # where other rules end
    layers = {"openneutron.whole.default"}  # compared in test_delegate.py
    assert UNCHANGED - tried - quantization == inner | layers


@pytest.mark.parametrize("reason", UNKNOWN)
def test_what_is_not_known_is_said(reason: str) -> None:
    with pytest.raises(Unknown, match=reason):
        direct_edge(exported([UNKNOWN[reason]]), ())


def test_an_operator_may_stay_whole() -> None:
    program = exported([lambda m, x: functional.linear(x, m.matrix), lambda m, x: functional.silu(x)])
    whole = [torch.ops.aten.linear.default, torch.ops.aten.silu.default]
    names = [node.name for node in direct_edge(program, whole).graph.nodes if node.op == "call_function"]
    assert names == ["aten_linear_default", "aten_silu_default"]
