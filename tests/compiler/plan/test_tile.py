"""What is on offer to the tiling, priced anew."""

from __future__ import annotations

import pytest

from benchmarks.board_networks import ds_cnn
from openneutron.compiler.cost import CostModel
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.pipeline import compile_graph
from openneutron.compiler.plan.candidates import IMPOSSIBLE, Candidate, Columns, candidates
from openneutron.compiler.plan.segments import Structure
from openneutron.compiler.plan.tile import (
    PROCESSOR_SHARE,
    PROCESSOR_SLACK,
    SLACK,
    TRIES,
    _Offers,
    price_candidate,
    tile,
)
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.options import Options
from tests.compiler.graphs import Net
from tests.compiler.networks import random_network

TARGET = targets.load("imxrt700")


@pytest.mark.parametrize("seed", range(4))
def test_a_candidate_has_the_price_of_its_segment(seed: int) -> None:
    """Found while it grew, and again from the finished segment."""
    model, _ = random_network(seed)
    graph = compile_graph(read_model(model).main, TARGET, Options(target=TARGET.name)).graph
    costs, structure = CostModel(graph, TARGET), Structure.of(graph)
    compared = 0
    for last, columns in enumerate(candidates(graph, costs)):
        for first, rows, pixels, memory, cycles in columns.T.tolist():
            if cycles < IMPOSSIBLE:
                assert price_candidate(structure, Candidate(first, last, rows, pixels, memory, cycles), costs) == cycles
                compared += 1
    assert compared > len(graph.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_on_offer_at_its_price(seed: int) -> None:
    """Offers count weights as they are stored, as the program's own cycles do."""
    model, _ = random_network(seed)
    unit = compile_graph(read_model(model).main, TARGET, Options(target=TARGET.name))
    assert unit.program.sections
    assert unit.cycles in {cycles for _, cycles in unit.tiling.pareto}


def _chain() -> KernelGraph:
    net = Net(16, width=16)
    return net.finish(net.conv(net.conv(net.conv(net.conv(net.input, 3), 3, 2), 3), 3, 2))


def _fewest_cycles(found: list[Columns], budget: int, end: int) -> int:
    """Cycles of the best way to run the nodes before `end`, by trying every way to divide them."""
    if end == 0:
        return 0
    ways = [
        _fewest_cycles(found, budget, first) + cycles
        for first, _, _, memory, cycles in found[end - 1].T.tolist()
        if memory <= budget
    ]
    return min(ways, default=IMPOSSIBLE)


def test_every_budget_gets_the_fewest_cycles_of_all_divisions() -> None:
    graph = _chain()
    found = candidates(graph, CostModel(graph, TARGET))
    # Few of the stripe heights, which makes all divisions countable.
    found = [columns[:, :: max(columns.shape[1] // 5, 1)] for columns in found]
    offers, seen = _Offers(found), set()
    for budget in sorted({size for columns in found for size in columns[3].tolist()} | {0}):
        best, fewest = offers.best(budget), _fewest_cycles(found, budget, len(found))
        assert fewest >= IMPOSSIBLE if best is None else best[0] == fewest
        if best is not None:
            assert all(item.memory <= budget for item in best[1]) and sum(item.cycles for item in best[1]) == fewest
            assert [item.first for item in best[1]] == [0, *(item.last + 1 for item in best[1][:-1])]
        seen.add(fewest)
    assert len(seen) > 3, "smaller budgets cost cycles"


def test_little_memory_costs_at_most_the_slack() -> None:
    graph = _chain()
    found = candidates(graph, CostModel(graph, TARGET))
    fastest = _Offers(found).best(1 << 40)
    assert fastest is not None
    tilings = tile(graph, TARGET)
    points = dict(tilings[0].pareto)
    assert 0 < len(tilings) <= TRIES and tilings[0].memory == min(tiling.memory for tiling in tilings)
    assert min(points.values()) == fastest[0]
    assert points[tilings[0].memory] * SLACK[1] <= fastest[0] * SLACK[0]
    cycles = [points[memory] for memory in sorted(points)]
    assert cycles == sorted(set(cycles), reverse=True), "each point on offer is faster than those with less memory"


def test_a_budget_is_kept_where_anything_fits_it() -> None:
    graph = _chain()
    least = min(tiling.memory for tiling in tile(graph, TARGET))
    assert all(tiling.memory <= least for tiling in tile(graph, TARGET, scratch_budget=least)[:1])
    assert tile(graph, TARGET, scratch_budget=0)[0].memory > 0, "the smallest there is, which the caller refuses"


def test_a_processor_pays_more_cycles_for_three_fifths_of_whole_tensors_memory() -> None:
    """Stripes of narrow tensors with many channels cost more than 5 % on the core with the fastest loops."""
    target = targets.load("cortex_m55")
    graph = compile_graph(read_model(ds_cnn()).main, target, Options(target=target.name, optimize="fast")).graph
    chosen, *_ = tile(graph, target)
    (whole,) = tile(graph, target, optimize="fast")
    fastest = chosen.pareto[-1][1]
    cycles = dict(chosen.pareto)[chosen.memory]
    assert chosen.memory * PROCESSOR_SHARE[1] <= whole.memory * PROCESSOR_SHARE[0]
    assert fastest * SLACK[0] < cycles * SLACK[1]
    assert cycles * PROCESSOR_SLACK[1] <= fastest * PROCESSOR_SLACK[0]
