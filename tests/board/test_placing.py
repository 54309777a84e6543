"""What NXP's converter takes and what it leaves."""

from __future__ import annotations

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from openneutron.board.placing import place
from openneutron.litert.read import read_model
from openneutron.machine import targets

MCXN = targets.load("mcxn94x")


def _left(data: bytes) -> list[str]:
    graph = read_model(data).main
    return [graph.operators[index].code for index in place(graph, MCXN, ()).reasons]


def test_a_softmax_that_is_read_again_is_taken() -> None:
    net = Layers((1, 4, 4, 8))
    data = net.finish(net.conv(net.softmax(net.conv(net.input, 8, 1)), 8, 1))
    assert _left(data) == []


def test_mean_may_change_the_scale() -> None:
    net = Layers((1, 4, 4, 8))
    assert _left(net.finish(net.mean(net.conv(net.input, 8, 1)))) == []


def test_quantize_softmax_and_dequantize_around_a_model_stay_on_the_cpu() -> None:
    assert sorted(_left(BOARD_NETWORKS["ds_cnn_s"]())) == ["DEQUANTIZE", "QUANTIZE", "SOFTMAX"]
