"""Graphs that fit in no one schedule are cut where the least crosses, and compute the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openneutron.compiler import pipeline
from openneutron.compiler.cutting import cut_points
from openneutron.compiler.fitting import Fitting
from openneutron.compiler.front.parsed_model import OperatorCache
from openneutron.compiler.variables import Variables
from openneutron.convert import convert
from openneutron.litert import DType, GraphBuilder, read_model, write_model
from openneutron.machine import targets
from openneutron.options import Options
from openneutron.run.runner import LiteRtRunner, random_inputs
from tests.compiler.graphs import Net
from tests.compiler.networks import Network


def turned(squeeze: int = 16, expand: int = 72, size: int = 112) -> bytes:
    """A stem, and something wide that is turned by a right angle, so never streamed: then the input is long dead."""
    net = Network(np.random.default_rng(0), (1, 2 * size, 2 * size, 3))
    x = net.conv(net.max_pool(net.conv(net.input, 32, 3, 2)), squeeze, 1)
    return net.finish(net.conv(net.transpose(net.conv(x, expand, 3), 0, 2, 1, 3), 4, 1, 4))


def fire(squeeze: int = 16, expand: int = 64, size: int = 112) -> bytes:
    """A stem and two fire modules, whose concatenations are the largest tensors."""
    net = Network(np.random.default_rng(0), (1, 2 * size, 2 * size, 3))
    x = net.max_pool(net.conv(net.input, 32, 3, 2))
    for _ in range(2):
        s = net.conv(x, squeeze, 1)
        x = net.concat([net.conv(s, expand, 1), net.conv(s, expand, 3)])
    return net.finish(net.conv(x, 4, 1, 4))


def equal(data: bytes, made: bytes) -> bool:
    inputs = random_inputs(LiteRtRunner(data).inputs, seed=0)
    ours, want = LiteRtRunner(made).run(inputs), LiteRtRunner(data).run(inputs)
    return all(np.array_equal(ours.outputs[name], value) for name, value in want.outputs.items())


def test_it_is_cut_where_the_least_crosses_and_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    data = turned()
    result = convert(data, Options(target="mcxn94x"))
    report = result.report
    assert all(op.converted for op in report.operators)
    assert report.totals.neutron_graphs == 2
    assert equal(data, result.model)
    # The cut lies behind the first squeeze, the smallest tensor there is between the input and the wide ones.
    assert [op.graph for op in report.operators].index(1) == 3
    roomy = dataclasses.replace(targets.load("mcxn94x"), sram_bytes=1 << 30)
    monkeypatch.setattr(pipeline.targets, "load", lambda name: roomy)
    unlimited = convert(data, Options(target="mcxn94x")).report
    assert unlimited.totals.neutron_graphs == 1
    assert report.totals.cycles <= 1.15 * unlimited.totals.cycles


def test_concatenations_are_streamed_rather_than_cut() -> None:
    data = fire()
    result = convert(data, Options(target="mcxn94x"))
    totals = result.report.totals
    assert totals.neutron_graphs == 1 and all(op.converted for op in result.report.operators)
    assert totals.scratch_bytes < 56 * 56 * 64  # not even half of one of them is ever stored
    assert equal(data, result.model)


def test_a_graph_of_one_node_has_nothing_to_cut_and_others_always_have() -> None:
    net = Net(64, 64, 64)
    net.graph.outputs = [net.conv(net.input, 3)]
    assert cut_points(net.graph, targets.load("mcxn94x")) == [0, 1]
    net.graph.outputs = [net.conv(net.conv(net.graph.outputs[0], 1), 3)]
    bounds = cut_points(net.graph, targets.load("mcxn94x"))
    assert bounds[0] == 0 and bounds[-1] == 3 and len(bounds) > 2 and bounds == sorted(set(bounds))


def test_pieces_hold_every_operator_once_and_none_before_its_inputs() -> None:
    graph = read_model(turned()).main
    chip, options = targets.load("mcxn94x"), Options(target="mcxn94x")
    fitting = Fitting(graph, chip, options, Variables(), pipeline.compile_graph, OperatorCache(graph, chip))
    found = fitting.split_to_fit(list(range(len(graph.operators))))
    assert sorted(index for piece in found for index in piece) == list(range(len(graph.operators)))
    made_in = {t: at for at, piece in enumerate(found) for index in piece for t in graph.operators[index].outputs}
    for at, piece in enumerate(found):
        assert all(made_in.get(t, 0) <= at for index in piece for t in graph.operators[index].inputs)


@pytest.mark.parametrize("seed", range(3))
def test_random_networks_on_ever_smaller_chips_stay_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    net = Network(rng, (1, 24, 24, 8))
    x = net.conv(net.input, 16)
    for _ in range(3):
        y = net.conv(net.depthwise(x), 16, 1)
        x = net.concat([net.add(x, y), net.conv(y, 8, 3)]) if rng.random() < 0.5 else net.add(x, y)
        x = net.conv(x, 16, 1)
    data = net.finish(net.conv(x, 4, 3, 2))
    chip = targets.load("mcxn94x")
    graphs, left = [], []
    for size in (64, 28, 20, 14):
        small = dataclasses.replace(chip, sram_bytes=size * 1024)
        monkeypatch.setattr(pipeline.targets, "load", lambda name, small=small: small)
        result = convert(data, Options(target="mcxn94x"))
        assert equal(data, result.model)
        graphs.append(result.report.totals.neutron_graphs)
        left.append(sum(not op.converted for op in result.report.operators))
        assert all("alone it needs" in op.reason for op in result.report.operators if op.reason_code == "too_large")
    assert graphs[0] == 1 and left[0] == 0 and max(graphs) > 1


def beside(count: int) -> bytes:
    """So many inputs, each added to itself."""
    g = GraphBuilder()
    pairs = [[g.tensor(f"{end}{at}", (1, 8), DType.INT8, 0.1, at % 3) for end in "xy"] for at in range(count)]
    for x, y in pairs:
        g.op("ADD", [x, x], [y])
    return write_model(g.finish([x for x, _ in pairs], [y for _, y in pairs]))


def joined(count: int) -> bytes:
    """So many inputs in one tensor."""
    g = GraphBuilder()
    parts = [g.tensor(f"x{at}", (1, 2), DType.INT8, 0.1, 0) for at in range(count)]
    whole = g.tensor("y", (1, 2 * count), DType.INT8, 0.1, 0)
    g.op("CONCATENATION", parts, [whole], axis=1)
    return write_model(g.finish(parts, [whole]))


@pytest.mark.parametrize("options", [Options(), Options(fit_bytes=1 << 16)], ids=["all memory", "a budget"])
@pytest.mark.parametrize(("count", "graphs"), [(256, 1), (257, 2), (600, 4)])
def test_more_inputs_than_a_graph_can_have_are_cut_by_number(count: int, graphs: int, options: Options) -> None:
    data = beside(count)
    result = convert(data, options)
    assert result.report.totals.neutron_graphs == graphs
    reference, compiled = LiteRtRunner(data), LiteRtRunner(result.model)
    inputs = random_inputs(reference.inputs, seed=0)
    wanted, got = reference.run(inputs).outputs, compiled.run(inputs).outputs
    assert all(np.array_equal(wanted[name], got[name]) for name in wanted)


def test_an_operator_with_more_inputs_than_a_graph_stays_with_a_reason() -> None:
    (left,) = convert(joined(257), Options()).report.operators
    assert not left.converted and "257 inputs" in left.reason and "at most 256" in left.reason and left.hint
    assert all(op.converted for op in convert(joined(256), Options()).report.operators)
