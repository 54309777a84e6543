from __future__ import annotations

import pytest

from openneutron.compiler.cost import CostModel, home_region
from openneutron.compiler.l1 import KernelGraph
from openneutron.machine import targets
from openneutron.microcode.table import Region
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _graph() -> KernelGraph:
    net = Net(20, width=6)
    return net.finish(net.conv(net.input, 3))


def test_no_rows_no_call_no_cost() -> None:
    costs = CostModel(_graph(), TARGET)
    assert costs.cycles(0, 0) == 0 < costs.cycles(0, 1) < costs.cycles(0, 20)


@pytest.mark.parametrize(("advance", "lead"), [(1, 0), (3, 0), (3, 2), (7, 24), (20, 0), (32, 5)])
def test_stripes_cost_what_their_calls_cost(advance: int, lead: int) -> None:
    costs, height = CostModel(_graph(), TARGET), 20
    starts = range(lead % advance - advance, height, advance)  # boundaries lie at lead mod advance
    calls = [min(start + advance, height) - max(start, 0) for start in starts]
    assert sum(max(rows, 0) for rows in calls) == height
    assert costs.price_stripes(0, height, advance, lead) == sum(costs.cycles(0, rows) for rows in calls)


def test_coded_weights_are_loaded_in_fewer_bytes() -> None:
    graph = _graph()
    costs = CostModel(graph, TARGET)
    weights = graph.nodes[0].operands[1]
    coded = costs.with_coded_sizes({id(weights): 64})
    assert coded.cycles(0, 1) <= costs.cycles(0, 1)
    assert coded.words(0) is costs.words(0), "encoded once for both"


def test_values_live_in_the_tcm_where_there_is_one() -> None:
    assert home_region(TARGET) is Region.SCRATCH
    assert home_region(targets.load("imx95")) is Region.TCM
