"""Streamed segments: the ring equations hold for every legal (segment, stripe) pair of random networks."""

from __future__ import annotations

import random

import pytest

from openneutron import targets
from openneutron.compiler import segments
from openneutron.compiler.allocate import allocate
from openneutron.compiler.kernels.pool_mean import PoolMeanParams, pool_mean
from openneutron.compiler.kernels.pool_sum import pool_sum
from openneutron.compiler.l1 import KernelGraph, Value
from openneutron.compiler.schedule import schedule
from openneutron.compiler.segments import Segment, Structure
from openneutron.compiler.verify import verify
from openneutron.microcode.table import ElementType, Rounding
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def _segments_ending(graph: KernelGraph, last: int, rows: int) -> list[Segment]:
    structure = Structure.of(graph)
    found, streams = [], {}
    for first in range(last, -1, -1):
        made = segments.extend(structure, streams, first, last, rows)
        if made is None:
            break
        streams[graph.nodes[first].output] = made
        found.append(segments.segment_of(structure, first, last, rows))
    return found


def _verify(graph: KernelGraph, chosen: Segment) -> None:
    structure = Structure.of(graph)
    order = [segments.whole(structure, n) for n in range(chosen.first)]
    order += [chosen, *(segments.whole(structure, n) for n in range(chosen.last + 1, len(graph.nodes)))]
    verify(graph, allocate(schedule(graph, order, TARGET)), TARGET)


def _random_net(rng: random.Random) -> KernelGraph:
    net = Net(rng.randint(8, 40))
    value = net.input
    for _ in range(rng.randint(2, 5)):
        if rng.random() < 0.3:
            inner = net.conv(value, 3)
            value = net.join(value, net.conv(inner, rng.choice([1, 3])))
        else:
            kernel = rng.choice([1, 2, 3, 5])
            stride = rng.choice([1, 1, 2])
            if net.graph.values[value].shape[1] < kernel + 2:
                kernel, stride = 1, 1
            value = net.conv(value, kernel, stride, pad=rng.choice([0, kernel // 2]))
    return net.finish(value)


@pytest.mark.parametrize("seed", range(15))
def test_every_segment_of_a_random_network_verifies(seed: int) -> None:
    graph = _random_net(random.Random(seed))
    checked = 0
    for last in range(len(graph.nodes)):
        for rows in (1, 2, 3, 8):
            for segment in _segments_ending(graph, last, rows):
                _verify(graph, segment)
                checked += 1
    assert checked >= len(graph.nodes) * 4


def test_chain_of_3x3_convolutions_holds_three_rows_at_one_row_per_call() -> None:
    net = Net(32)
    graph = net.finish(net.conv(net.conv(net.input, 3), 3))
    segment = segments.segment_of(Structure.of(graph), 0, 1, 1)
    assert segment.streams[graph.nodes[0].output].ring == 3


def test_residual_skip_is_one_more_consumer() -> None:
    net = Net(32)
    head = net.conv(net.input, 1)
    graph = net.finish(net.join(head, net.conv(net.conv(head, 3), 3)))
    segment = segments.segment_of(Structure.of(graph), 0, 3, 1)
    assert segment.streams[head].ring == 3  # what the first convolution needs anyway: the skip is free


def test_node_that_two_segments_read_is_stored_whole() -> None:
    net = Net(16)
    head = net.conv(net.input, 3)
    tail = net.conv(head, 3)
    graph = net.finish(net.join(head, net.conv(tail, 3)))
    segment = segments.segment_of(Structure.of(graph), 0, 1, 1)
    assert segment.streams[head].ring == 0


def test_sums_of_a_streamed_pool_outlive_the_iteration() -> None:
    net = Net(16)
    graph = net.finish(net.conv(net.input, 1))
    sums_node, sums = pool_sum(graph, graph.nodes[0].output)
    graph.nodes.append(sums_node)
    out = graph.add_value(Value("mean", (1, 1, 1, 8), ElementType.INT8))
    graph.nodes.append(pool_mean(sums, 16, out, PoolMeanParams(64, 0, 0, 0, 0, -128, 127), Rounding.NONE))
    graph.outputs = [out]
    stream = segments.segment_of(Structure.of(graph), 0, 2, 1).streams[sums]
    assert (stream.ring, stream.transient) == (1, False)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_that_nobody_reads_do_not_push_out_others(reverse: bool) -> None:
    net = Net(16)
    graph = net.finish(net.conv(net.conv(net.input, 3), 1, 2))
    segment = segments.segment_of(Structure.of(graph), 0, 1, 1, reverse=reverse)
    verify(graph, allocate(schedule(graph, [segment], TARGET)), TARGET)
