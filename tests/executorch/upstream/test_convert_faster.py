"""A quick conversion leaves the graph that torchao's own leaves."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule
from torch.fx.traceback import NodeSource
from torchao.quantization.pt2e.constant_fold import ConstantFolder
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

from openneutron.executorch.capture.export import export
from openneutron.executorch.quantize import NeutronQuantizer
from openneutron.executorch.quantize.choices import Choices
from openneutron.executorch.quantize.pt2e import calibrate, prepare
from openneutron.executorch.upstream import convert_faster as convert_faster_module
from openneutron.executorch.upstream.convert_faster import convert_faster
from openneutron.executorch.upstream.recompile_once import recompile_once
from tests.work import calls


class _Gated(nn.Module):
    """Weights read twice, a constant that is computed, and a result that is read as it is and in another order."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru, self.linear = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.linear(self.linear(self.gru(x)[0])) * torch.arange(6).float()
        return y, y.transpose(1, 2)


def _prepared(*, per_channel: bool = False) -> GraphModule:
    x = torch.linspace(-1, 1, 20).reshape(1, 5, 4)
    made = prepare(export(_Gated().eval(), (x,)), NeutronQuantizer.of(Choices(per_channel=per_channel)))
    calibrate(made, [(x,)])
    return made


def _shown(module: GraphModule) -> list[Any]:
    """Each node and where it comes from, without the numbers of graphs."""
    found: list[Any] = []
    for node in module.graph.nodes:
        history = [_history(one) for one in node.meta.get("from_node", ())]
        found.append((node.name, node.op, str(node.target), str(node.args), str(node.kwargs), history))
    return found


def _history(source: NodeSource) -> Any:
    return source.name, source.target, source.pass_name, [_history(one) for one in source.from_node]


def test_graphs_constants_and_histories_are_those_of_torchao() -> None:
    plain = convert_pt2e(_prepared())
    with convert_faster():
        quick = convert_pt2e(_prepared())
    assert _shown(quick) == _shown(plain)
    assert quick.state_dict().keys() == plain.state_dict().keys()
    assert all(torch.equal(value, plain.state_dict()[name]) for name, value in quick.state_dict().items())


def test_large_weights_are_quantized_a_few_channels_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = convert_pt2e(_prepared(per_channel=True)).state_dict()
    largest = list[int]()
    operator = torch.ops.quantized_decomposed.quantize_per_channel.default

    def look(folder: Any, target: Any, args: Any, kwargs: Any) -> Any:
        if target is operator:
            largest.append(args[0].numel())
        return target(*args, **kwargs)

    monkeypatch.setattr(convert_faster_module, "_AT_ONCE", 13)
    monkeypatch.setattr(ConstantFolder, "call_function", look)
    with convert_faster():
        quick = convert_pt2e(_prepared(per_channel=True)).state_dict()
    assert largest and max(largest) <= 13
    assert all(torch.equal(value, plain[name]) for name, value in quick.items())


def test_it_is_less_work() -> None:
    with recompile_once():
        plain = calls(partial(convert_pt2e, _prepared()))
        with convert_faster():
            assert calls(partial(convert_pt2e, _prepared())) < 0.8 * plain


def test_torch_is_itself_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = NodeSource(None, "somewhere")
    with convert_faster():
        assert copy.deepcopy([source])[0] is source
    assert copy.deepcopy([source])[0] is not source
