"""The CPU model against the published latencies it claims to know."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron import zoo
from openneutron.board.cpu import CORTEX_M
from openneutron.errors import OptionError
from openneutron.executorch.place.cpu_model import cpu_clock, cpu_cycles

# NXP's eIQ model zoo, Cortex-M33 of MCX N94x at 150 MHz with CMSIS-NN, milliseconds.
PUBLISHED = {"resnet8": 266.7, "ds_cnn": 62.0, "autoencoder": 5.6}


def milliseconds(model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> float:
    from executorch.exir import to_edge

    graph = to_edge(torch.export.export(model.eval(), inputs)).exported_program().graph
    ignored = ("batch_norm", "relu", "hardtanh", "permute", "clone")  # folded or fused on the device
    nodes = [n for n in graph.nodes if n.op == "call_function" and not any(word in str(n.target) for word in ignored)]
    return sum(cpu_cycles(node, CORTEX_M) for node in nodes) / cpu_clock("mcxn94x") * 1e3


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_model_is_within_five_per_cent_of_what_nxp_publishes(name: str) -> None:
    model = zoo.load(name)
    assert milliseconds(model.model, model.example_inputs) == pytest.approx(PUBLISHED[name], rel=0.05)


def test_a_target_without_a_model_is_refused() -> None:
    with pytest.raises(OptionError, match="no model of imx95's CPU"):
        cpu_clock("imx95")
