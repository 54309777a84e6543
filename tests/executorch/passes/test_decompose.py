"""Attention, layer norms and recurrent layers taken apart: the float results stay, nothing composite is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import GraphModule

from openneutron.executorch.fx import module_path, operator_name, source_line, value_of
from openneutron.executorch.passes.aten.decompose_attention import decompose_attention
from openneutron.executorch.passes.aten.decompose_gru import decompose_gru
from openneutron.executorch.passes.aten.decompose_layer_norm import decompose_layer_norm
from openneutron.executorch.passes.aten.decompose_lstm import decompose_lstm

Pass = Callable[[GraphModule], int]
FRAMES = torch.linspace(-2, 2, 2 * 5 * 6).reshape(2, 5, 6)


class Attention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x + 1, x * 2, **self.options)


class Masked(nn.Module):
    def __init__(self, largest: float) -> None:
        super().__init__()
        self.register_buffer("mask", torch.linspace(-largest, 0, 25).reshape(5, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)


class Recurrent(nn.Module):
    """All results of a layer; with `states` it begins from them."""

    def __init__(self, layer: nn.Module, states: tuple[torch.Tensor, ...] = ()) -> None:
        super().__init__()
        self.layer = layer
        self.states = states

    def forward(self, x: torch.Tensor) -> Any:
        given = self.states if len(self.states) > 1 else self.states[0] if self.states else None
        y, last = self.layer(x, given)
        return (y, y[:, -1], *(last if isinstance(last, tuple) else (last,)))


def ones(*sizes: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.linspace(-1, 1, 4 * size).reshape(2, 2, size) for size in sizes)


CASES: dict[str, tuple[Pass, Callable[[], nn.Module]]] = {
    "attention": (decompose_attention, Attention),
    "attention with its own scale": (decompose_attention, lambda: Attention(scale=0.3)),
    "attention with a mild mask": (decompose_attention, lambda: Masked(4.0)),
    "layer norm": (decompose_layer_norm, lambda: nn.LayerNorm(6)),
    "layer norm over two dimensions": (decompose_layer_norm, lambda: nn.LayerNorm([5, 6])),
    "layer norm without gain": (decompose_layer_norm, lambda: nn.LayerNorm(6, elementwise_affine=False)),
    "layer norm without offset": (decompose_layer_norm, lambda: nn.LayerNorm(6, bias=False, eps=0.1)),
    "gru": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, batch_first=True))),
    "gru, time first": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4))),
    "gru without bias": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, bias=False, batch_first=True))),
    "gru, two layers, both ways": (
        decompose_gru,
        lambda: Recurrent(nn.GRU(6, 4, 2, batch_first=True, bidirectional=True, dropout=0.5)),
    ),
    "gru from a state": (decompose_gru, lambda: Recurrent(nn.GRU(6, 4, 2, batch_first=True), ones(4))),
    "lstm": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, batch_first=True))),
    "lstm, time first": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4))),
    "lstm without bias": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, bias=False, batch_first=True))),
    "lstm, two layers, both ways": (
        decompose_lstm,
        lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True, bidirectional=True)),
    ),
    "lstm from states": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True), ones(4, 4))),
    "lstm with projection": (decompose_lstm, lambda: Recurrent(nn.LSTM(6, 4, 2, batch_first=True, proj_size=3))),
}

COMPOSITE = {
    "aten.scaled_dot_product_attention.default", "aten.layer_norm.default", "aten.gru.input", "aten.lstm.input",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_stay_and_nothing_composite_is_left(name: str) -> None:
    step, make = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    module = torch.export.export(model, (FRAMES,)).module()
    assert step(module) == 1
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    assert not COMPOSITE & {operator_name(node) for node in module.graph.nodes}
    with torch.no_grad():
        wanted, got = model(FRAMES), module(FRAMES)
    many = (wanted, got) if isinstance(wanted, tuple) else ((wanted,), (got,))
    for one, other in zip(*many, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5)
    for node in module.graph.nodes:
        if node.op == "call_function":
            assert value_of(node) is not None, f"{node.name} does not know its shape"


def test_the_new_calls_know_where_they_come_from() -> None:
    module = torch.export.export(nn.Sequential(nn.LayerNorm(6)).eval(), (FRAMES,)).module()
    decompose_layer_norm(module)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    assert {module_path(node) for node in calls} == {"0"}
    assert all(source_line(node) for node in calls)


def test_a_reader_of_one_step_gets_that_step_and_no_concatenation() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(6, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.gru(x)[0][:, -2]

    model = Last().eval()
    module = torch.export.export(model, (FRAMES,)).module()
    decompose_gru(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    assert "aten.cat.default" not in {operator_name(node) for node in module.graph.nodes}
    torch.testing.assert_close(module(FRAMES), model(FRAMES))


@pytest.mark.parametrize(
    "model",
    [Masked(100.0), Attention(is_causal=True), Attention(dropout_p=0.5)],
    ids=["mask too large for INT8", "causal", "dropout"],
)
def test_attention_that_int8_cannot_resolve_stays(model: nn.Module) -> None:
    module = torch.export.export(model, (FRAMES,)).module()
    assert decompose_attention(module) == 0


def test_recurrent_dropout_in_training_stays() -> None:
    module = torch.export.export(Recurrent(nn.GRU(6, 4, 2, dropout=0.5, batch_first=True)).train(), (FRAMES,)).module()
    assert decompose_gru(module) == 0
