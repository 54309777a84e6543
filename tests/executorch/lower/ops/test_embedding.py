"""Rows of tables looked up by tokens and positions: on the NPU, with the index as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import openneutron as on
from openneutron.errors import OpenNeutronError
from openneutron.litert.read import read_model


class Lookups(nn.Module):
    """An embedding by tokens, a table of angles by position, and a boolean mask by position."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(11, 8), nn.Linear(8, 8)
        self.register_buffer("angles", torch.arange(24.0).reshape(6, 4) / 5)
        self.register_buffer("allowed", torch.ones(6, 8).tril().bool())

    def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)[:, 0]
        turned = torch.cat([self.angles.index_select(0, position).cos(), self.angles[position].sin()], -1)
        scores = self.head(x * turned)
        return torch.softmax(scores + torch.where(self.allowed[position], 0.0, -torch.inf), -1)


@pytest.fixture(scope="module")
def model() -> Lookups:
    torch.manual_seed(0)
    return Lookups().eval()


@pytest.fixture(scope="module")
def program(model: Lookups) -> on.Program:
    samples = [(torch.randint(0, 11, (1, 1)), torch.tensor([at % 6])) for at in range(24)]
    return on.compile(model, samples[0], calibration=samples)


def test_everything_but_the_result_runs_on_the_npu(model: Lookups, program: on.Program) -> None:
    left = [node.operator for node in program.report.nodes if not node.delegated]
    assert left == ["quantized_decomposed.dequantize_per_tensor.default"]
    for position in range(6):
        inputs = (torch.tensor([[3 + position]]), torch.tensor([position]))
        made = np.asarray(program.run(*inputs)[0])
        assert np.abs(made - model(*inputs).detach().numpy()).max() < 0.05


def test_tokens_and_positions_outside(program: on.Program) -> None:
    for token, position in ((11, 0), (-1, 0), (0, 6)):
        with pytest.raises(OpenNeutronError, match="lies outside its tensor"):
            program.run(torch.tensor([[token]]), torch.tensor([position]))


def test_beside_4_bit_weights_an_embedding_has_8_bits() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(50, 32), nn.Linear(32, 32)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.words(tokens))

    torch.manual_seed(0)
    model, samples = Words().eval(), [(torch.tensor([at % 50]),) for at in range(0, 400, 7)]
    given = {"activations": "int16", "adaround": False, "quality": "plain", "dump_intermediates": True}
    for weights, kind in (("int4", "int8"), ("int8", "int16")):
        program = on.compile(model, samples[0], calibration=samples, weights=weights, **given)
        graph = read_model(bytes(program.intermediates["partition_0.tflite"])).main
        (lookup,) = (op for op in graph.operators if op.code == "GATHER")
        assert graph.tensors[lookup.inputs[0]].dtype == kind
        assert graph.tensors[graph.outputs[0]].dtype == "int16"
        want = model(*samples[3]).detach().numpy()
        assert np.abs(np.asarray(program.run(*samples[3])[0]) - want).max() < (0.3 if weights == "int4" else 0.02)
