"""What is on offer to the tiling, priced anew."""

from __future__ import annotations

import pytest

from openneutron.compiler.cost import CostModel
from openneutron.compiler.pipeline import compile_graph
from openneutron.compiler.plan.candidates import IMPOSSIBLE, Candidate, candidates
from openneutron.compiler.plan.segments import Structure
from openneutron.compiler.plan.tile import priced
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.options import Options
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
                assert priced(structure, Candidate(first, last, rows, pixels, memory, cycles), costs) == cycles
                compared += 1
    assert compared > len(graph.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_on_offer_at_its_price(seed: int) -> None:
    """Offers count weights as they are stored, as the program's own cycles do."""
    model, _ = random_network(seed)
    unit = compile_graph(read_model(model).main, TARGET, Options(target=TARGET.name))
    assert unit.program.sections
    assert unit.cycles in {cycles for _, cycles in unit.tiling.pareto}
