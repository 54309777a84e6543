"""Weights and microcode against the headers of files that NXP's converter made."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from benchmarks.published import HEADERS, Header
from openneutron.board.answer import stock_answer
from openneutron.board.flash import operator_weight_bytes, prefetch_bytes
from openneutron.board.sdk import rules
from openneutron.litert.graph import Operator
from openneutron.litert.read import read_model
from openneutron.machine import targets


@pytest.mark.parametrize("header", HEADERS, ids=lambda one: f"{one.version}-{one.target}-{one.network}")
def test_every_public_header_is_met(header: Header) -> None:
    answer = stock_answer(BOARD_NETWORKS[header.network](), targets.load(header.target), sdk=header.version)
    assert answer.scratch_bytes == header.scratch_bytes
    assert answer.kernel_calls == header.kernel_calls or not header.kernel_calls
    assert answer.kernel_bytes == header.kernel_bytes
    assert answer.weight_bytes == pytest.approx(header.weight_bytes, rel=0.05)
    assert answer.microcode_bytes == pytest.approx(header.microcode_bytes, rel=0.10)
    assert answer.graphs == 1


@pytest.mark.parametrize(("size", "taps"), [(1, 1), (2, 9), (8, 9)])
def test_taps_that_only_see_padding_are_not_stored(size: int, taps: int) -> None:
    net = Layers((1, size, size, 16))
    graph = read_model(net.finish(net.conv(net.input, 8, 3))).main
    target = targets.load("imxrt700")
    assert operator_weight_bytes(graph, graph.operators[0], target, rules("imxrt700")) == 8 * taps * 16 + 8 * 8


@pytest.mark.parametrize(("chip", "channels"), [("mcxn94x", 4), ("imxrt700", 8), ("imxrt2660", 3)])
def test_input_channels_fill_the_array_of_neutron_c(chip: str, channels: int) -> None:
    net = Layers((1, 8, 8, 3))
    graph = read_model(net.finish(net.conv(net.input, 8, 3))).main
    found = operator_weight_bytes(graph, graph.operators[0], targets.load(chip), rules(chip))
    assert found == 8 * 9 * channels + 8 * 8


def test_depthwise_weights_differ_between_chips_and_versions() -> None:
    net = Layers((1, 8, 8, 1))
    graph = read_model(net.finish(net.depthwise(net.depthwise(net.input, multiplier=8)))).main
    first, second = graph.operators

    def size(op: Operator, chip: str, version: str) -> int:
        return operator_weight_bytes(graph, op, targets.load(chip), rules(chip, version)) - 8 * 8

    assert [size(first, *one) for one in (("mcxn94x", "1.2"), ("imxrt700", "1.2-preview"), ("imxrt700", "1.2"))] == [
        4 * 72, 2 * 72, 72,
    ]  # fmt: skip
    assert [size(second, *one) for one in (("mcxn94x", "1.2"), ("imxrt700", "1.2"))] == [72, 8 * 16]


def test_fetched_weights_are_those_of_two_neighbours() -> None:
    net = Layers((1, 4, 4, 8))
    graph = read_model(net.finish(net.conv(net.conv(net.conv(net.input, 8, 1), 32, 1), 8, 1))).main
    by = rules("imxrt700")
    found = prefetch_bytes(graph, graph.operators, targets.load("imxrt700"), by)
    assert found == 2 * 8 * 32 + 8 * (32 + 8) + by.prefetch_bytes
    assert prefetch_bytes(graph, [], targets.load("imxrt700"), by) == 0
