"""The CPU model of LiteRT operators against latencies that NXP published for the CPU alone."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import BOARD_NETWORKS
from benchmarks.networks import Layers
from benchmarks.published import CPU_ONLY_MILLISECONDS
from openneutron.board.cpu import CORTEX_M, DELEGATE_CALL, PORTABLE, cpu_cycles, delegate_call, on_core
from openneutron.litert.read import read_model
from openneutron.machine import targets


@pytest.mark.parametrize("network", CPU_ONLY_MILLISECONDS)
def test_published_cpu_latencies_are_met_within_five_per_cent(network: str) -> None:
    graph = read_model(BOARD_NETWORKS[network]()).main
    cycles = sum(cpu_cycles(graph, op) for op in graph.operators)
    milliseconds = cycles / targets.load("mcxn94x").cpu_clock_hz * 1e3
    assert milliseconds == pytest.approx(CPU_ONLY_MILLISECONDS[network], rel=0.05)


def test_softmax_is_paid_by_element() -> None:
    net = Layers((1, 1001))
    graph = read_model(net.finish(net.softmax(net.input))).main
    assert cpu_cycles(graph, graph.operators[0]) == round(CORTEX_M.call + 1001 * CORTEX_M.exponential)


def test_each_core_has_costs_of_its_own() -> None:
    m33, a55 = targets.load("imxrt700"), targets.load("imx95")
    assert on_core(CORTEX_M, m33) is CORTEX_M and on_core(PORTABLE, m33) is PORTABLE
    assert on_core(CORTEX_M, a55).mac < CORTEX_M.mac and on_core(PORTABLE, a55).mac < PORTABLE.mac
    assert delegate_call(m33) == DELEGATE_CALL < delegate_call(a55)
