"""The CPU model: the published latencies its constants were solved from, and the class of each operator."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from openneutron import zoo
from openneutron.board.cpu import CORTEX_M
from openneutron.errors import OptionError
from openneutron.executorch.operators import CPU_CLASSES, lowerings
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
def test_the_points_it_was_solved_from_come_out_again(name: str) -> None:
    model = zoo.load(name)
    assert milliseconds(model.model, model.example_inputs) == pytest.approx(PUBLISHED[name], rel=0.05)


def test_a_target_without_a_model_is_refused() -> None:
    with pytest.raises(OptionError, match="no model of imx943's CPU"):
        cpu_clock("imx943")


def cycles_of(model: nn.Module, *inputs: torch.Tensor) -> int:
    from executorch.exir import to_edge

    graph = to_edge(torch.export.export(model.eval(), inputs)).exported_program().graph
    (node,) = [n for n in graph.nodes if n.op == "call_function" and "upsample" in str(n.target)]
    return cpu_cycles(node, CORTEX_M)


def test_bilinear_interpolation_is_four_taps_an_element_not_a_matrix_product() -> None:
    elements = 32 * 32 * 8
    found = cycles_of(nn.Upsample(scale_factor=2, mode="bilinear"), torch.zeros(1, 8, 16, 16))
    assert found == round(CORTEX_M.call + elements * 4 * CORTEX_M.tap)


def test_every_rule_has_a_known_class() -> None:
    assert {rule.cpu for rule in lowerings().values()} <= set(CPU_CLASSES)
    assert lowerings()["aten.upsample_bilinear2d.vec"].cpu == "interpolate"
    assert lowerings()["aten.convolution.default"].cpu == "conv"
