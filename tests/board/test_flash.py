"""Weights and microcode against the headers of files that NXP's converter made."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from benchmarks.published import HEADERS, Header
from openneutron.board.answer import stock_answer
from openneutron.board.flash import operator_weight_bytes
from openneutron.litert.read import read_model
from openneutron.machine import targets


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.network)
def test_weights_are_within_five_per_cent_of_the_header(header: Header) -> None:
    answer = stock_answer(BOARD_NETWORKS[header.network](), targets.load(header.target))
    assert answer.weight_bytes == pytest.approx(header.weight_bytes, rel=0.05)
    assert answer.microcode_bytes == pytest.approx(header.microcode_bytes, rel=0.10)


@pytest.mark.parametrize(("size", "taps"), [(1, 1), (2, 9), (8, 9)])
def test_taps_that_only_see_padding_are_not_stored(size: int, taps: int) -> None:
    net = Layers((1, size, size, 16))
    graph = read_model(net.finish(net.conv(net.input, 8, 3))).main
    assert operator_weight_bytes(graph, graph.operators[0]) == 8 * taps * 16 + 8 * 8
