from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from openneutron.compiler.back.emit import emit
from openneutron.compiler.back.predict import predict
from openneutron.compiler.cost import CostModel, home_region
from openneutron.compiler.front.fuse import fuse
from openneutron.compiler.front.ingest import extract, ingest
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.pipeline import compile_graph
from openneutron.compiler.plan.allocate import Effort, allocate
from openneutron.compiler.plan.bound import cycle_bound
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Segment, Structure, try_segment, whole
from openneutron.litert.graph import Graph
from openneutron.litert.read import read_model
from openneutron.machine import targets
from openneutron.options import Options
from tests.compiler.networks import Network, random_network

NAMES = ("imxrt700", "mcxn94x", "imx95")


def kernels_of(net: Network, output: int, target: str) -> tuple[Graph, KernelGraph]:
    graph = read_model(net.finish(output)).main
    kernels = legalize(graph, targets.load(target))
    fuse(kernels, targets.load(target))
    return graph, kernels


def divisions(rows: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide rows among calls."""
    if not rows:
        yield ()
    for first in range(1, rows + 1):
        yield from ((first, *rest) for rest in divisions(rows - first))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_is_below_the_bound(seed: int, name: str) -> None:
    model, _ = random_network(seed)
    target = targets.load(name)
    graph = read_model(model).main
    (group,) = ingest(graph, target).groups
    for optimize in ("fast", "default"):
        unit = compile_graph(extract(graph, group)[0], target, Options(target=name, optimize=optimize))
        bound = cycle_bound(unit.graph, target, unit.constants.coded_sizes())
        assert 0 < bound <= min(unit.cycles, cycle_bound(unit.graph, target))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [5, 6, 7, 36])
def test_the_bound_of_a_layer_is_its_cheapest_division(width: int, name: str) -> None:
    net = Network(np.random.default_rng(width), (1, 9, width, 16))
    _, kernels = kernels_of(net, net.conv(net.input, 24, 1), name)
    costs = CostModel(kernels, targets.load(name), local=home_region(targets.load(name)))
    priced = [sum(costs.cycles(0, rows) for rows in one) for one in divisions(9)]
    assert len(priced) == 2**8
    assert cycle_bound(kernels, targets.load(name)) == min(priced) < max(priced)


def test_two_tiles_load_weights_twice() -> None:
    """36 pixels in one call are a tile of 32 and one of 4, which waits for its weights; in two calls neither is so short."""
    net = Network(np.random.default_rng(0), (1, 6, 6, 64))
    _, kernels = kernels_of(net, net.conv(net.input, 64, 1), "imxrt700")
    target = targets.load("imxrt700")
    steps, groups = 8, 8
    array = 36 * steps * groups * target.cost.mac // 1024
    assert cycle_bound(kernels, target) > 1.2 * array


def test_every_segmentation_of_a_small_network() -> None:
    """All cut points, stripe heights and directions of three convolutions, each schedule priced as emitted."""
    net = Network(np.random.default_rng(3), (1, 6, 6, 8))
    x = net.conv(net.conv(net.input, 16), 16, stride=2)
    graph, kernels = kernels_of(net, net.conv(x, 8, 1), "imxrt700")
    target, structure = targets.load("imxrt700"), Structure.of(kernels)
    bound, found = cycle_bound(kernels, target), []
    for cuts in ([[0], [1], [2]], [[0, 1], [2]], [[0], [1, 2]], [[0, 1, 2]]):
        for segments in product(*(ways(structure, cut[0], cut[-1]) for cut in cuts)):
            tasks = allocate(schedule(kernels, list(segments), target, structure=structure), Effort.GREEDY)
            found.append(predict(emit(graph, kernels, tasks, target), target)[1])
    assert len(found) > 100
    assert min(found) == bound


def ways(structure: Structure, first: int, last: int) -> list[Segment]:
    """How these nodes may run as one segment: any stripe height; several of them in both directions, and in parts."""
    rows = range(1, structure.graph.values[structure.graph.nodes[last].output].shape[1] + 1)
    if first == last:
        return [whole(structure, first), *(one for r in rows if (one := try_segment(structure, first, last, r)))]
    made = [
        try_segment(structure, first, last, r, reverse=reverse, pixels=pixels)
        for r, reverse, pixels in product(rows, (False, True), (0, 1))
    ]
    return [one for one in made if one is not None]
