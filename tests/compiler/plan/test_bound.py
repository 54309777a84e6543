from __future__ import annotations

import pytest

from openneutron.compiler.front.ingest import extract, ingest
from openneutron.compiler.pipeline import compile_graph
from openneutron.compiler.plan.bound import cycle_bound
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.options import Options
from tests.compiler.networks import random_network


@pytest.mark.parametrize("name", ["imxrt700", "mcxn94x", "imx95"])
@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_is_below_the_bound(seed: int, name: str) -> None:
    model, _ = random_network(seed)
    target = targets.load(name)
    graph = read_model(model).main
    (group,) = ingest(graph, target).groups
    for optimize in ("fast", "default"):
        unit = compile_graph(extract(graph, group)[0], target, Options(target=name, optimize=optimize))
        bound = cycle_bound(unit.graph, target)
        calls = sum(event.lane == "array" for event in unit.events)
        assert 0 < bound <= unit.cycles - calls * target.cost.call // 1024 + calls
