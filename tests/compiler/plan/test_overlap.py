"""Outputs that lie over inputs: nothing is written over that is still read, also as a part of a tensor."""

from __future__ import annotations

import numpy as np
import pytest

from openneutron.compiler.front.fuse import fuse
from openneutron.compiler.front.legalize import legalize
from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.l2 import Overlap
from openneutron.compiler.plan import overlap as module
from openneutron.compiler.plan.segments import Segment
from openneutron.litert.read import read_model
from openneutron.machine import targets
from tests.compiler.networks import Network
from tests.compiler.plan.test_segments import segments_ending, verified

TARGET = targets.load("imxrt700")


def gated() -> KernelGraph:
    """Three parts of one tensor: the first copied, the second through a window, the third as it is."""
    net = Network(np.random.default_rng(0), (1, 24, 6, 8))
    wide = net.conv(net.input, 32, 1)
    size = [1, 24, 6]
    copied, windowed = net.slice(wide, [0, 0, 0, 16], [*size, 8]), net.slice(wide, [0, 0, 0, 24], [*size, 8])
    gate = net.logistic(net.slice(wide, [0, 0, 0, 0], [*size, 16]))
    joined = net.concat([copied, net.conv(windowed, 8, 7)])
    data = net.finish(net.conv(net.add(gate, joined), 8, 1))
    graph = legalize(read_model(data, source="gated").main, TARGET)
    fuse(graph, TARGET, (), fetch_constants=False, thrifty=False)
    return graph


@pytest.mark.parametrize("reverse", [False, True], ids=["from the top", "from the bottom"])
def test_parts_of_a_dying_input_are_read_before_they_are_written_over(
    reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = gated()
    assert any(value.alias is not None for value in graph.values)
    found: list[Overlap] = []
    overlaps_of = module.overlaps_of

    def noted(graph: KernelGraph, segment: Segment, stored: dict[int, int]) -> list[Overlap]:
        made = overlaps_of(graph, segment, stored)
        found.extend(made)
        return made

    monkeypatch.setattr("openneutron.compiler.plan.schedule.overlaps_of", noted)
    for last in range(len(graph.nodes)):
        for rows in (1, 2, 5):
            for segment in segments_ending(graph, last, rows, 0, reverse):
                verified(graph, segment)
    assert found
