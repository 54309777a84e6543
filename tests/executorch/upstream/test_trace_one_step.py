"""Recurrent layers exported by a look at one step are the programs that torch exports by looking at all."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from openneutron.executorch.capture.export import export
from openneutron.executorch.fx import value_of
from openneutron.executorch.upstream.trace_one_step import trace_one_step
from tests.work import calls

LAYERS = {
    "gru": nn.GRU(4, 6, batch_first=True),
    "lstm": nn.LSTM(4, 6, num_layers=2, bidirectional=True),
    "projected lstm": nn.LSTM(4, 6, proj_size=3, bias=False, batch_first=True),
    "rnn": nn.RNN(4, 6, bidirectional=True, batch_first=True),
}


def seen(program: torch.export.ExportedProgram) -> list[Any]:
    """Each node with what its values look like."""
    found = []
    for node in program.graph.nodes:
        values = value_of(node) if isinstance(value_of(node), (tuple, list)) else [value_of(node)]
        like = [
            (one.shape, one.dtype, one.stride(), one.requires_grad) for one in values if isinstance(one, torch.Tensor)
        ]
        found.append((node.name, str(node.target), str(node.args), like))
    return found


@pytest.mark.parametrize("name", LAYERS)
def test_programs_are_those_of_torch(name: str) -> None:
    layer, x = LAYERS[name].eval(), torch.zeros(2, 5, 4)
    assert seen(export(layer, (x,))) == seen(torch.export.export(layer, (x,)))


def test_steps_cost_nothing() -> None:
    layer = LAYERS["gru"].eval()
    few, many = (calls(partial(export, layer, (torch.zeros(1, steps, 4),))) for steps in (10, 100))
    assert many < 1.2 * few


def test_torch_is_itself_again() -> None:
    before = torch._decomp.decompositions.one_layer_lstm
    with trace_one_step():
        assert torch._decomp.decompositions.one_layer_lstm is not before
    assert torch._decomp.decompositions.one_layer_lstm is before


def test_data_goes_through_every_step() -> None:
    layer, x = LAYERS["rnn"].eval(), torch.linspace(-1, 1, 40).reshape(2, 5, 4)
    with torch.no_grad():
        plain = layer(x)[0]
        with trace_one_step():
            assert torch.equal(torch._decomp.decompositions.rnn_tanh_input(
                x, torch.zeros(2, 2, 6), list(layer.parameters()), True, 1, 0.0, False, True, True)[0], plain)  # fmt: skip
