"""Streamed segments: the ring equations hold for every legal (segment, stripe) pair of random networks."""

from __future__ import annotations

import random

import pytest

from openneutron.compiler.back.verify_schedule import verify
from openneutron.compiler.kernels.pool_mean import PoolMeanParams, pool_mean
from openneutron.compiler.kernels.pool_sum import pool_sum
from openneutron.compiler.l1 import KernelGraph, Value
from openneutron.compiler.plan import segments
from openneutron.compiler.plan.allocate import allocate
from openneutron.compiler.plan.call_order import CallOrder
from openneutron.compiler.plan.schedule import schedule
from openneutron.compiler.plan.segments import Segment, Structure
from openneutron.machine import targets
from openneutron.microcode.table import ElementType, Region, Rounding
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def segments_ending(graph: KernelGraph, last: int, rows: int, pixels: int, reverse: bool) -> list[Segment]:
    structure = Structure.of(graph)
    found, streams = [], {}
    body = CallOrder() if pixels else None
    for first in range(last, -1, -1):
        made = segments.extend(structure, streams, first, last, rows, reverse, pixels, body)
        if made is None or (body is not None and len(body.calls) > segments.MAX_BODY):
            break
        streams[graph.nodes[first].output] = made
        segment = segments.try_segment(structure, first, last, rows, reverse=reverse, pixels=pixels)
        if segment is not None:  # it may begin between the writers of one value
            found.append(segment)
    return found


def verified(graph: KernelGraph, chosen: Segment) -> None:
    structure = Structure.of(graph)
    order = [segments.whole(structure, n) for n in range(chosen.first)]
    order += [chosen, *(segments.whole(structure, n) for n in range(chosen.last + 1, len(graph.nodes)))]
    verify(graph, allocate(schedule(graph, order, TARGET)), TARGET)


def _random_net(rng: random.Random) -> KernelGraph:
    net = Net(rng.randint(8, 20))
    value = net.input
    for _ in range(rng.randint(2, 5)):
        kind = rng.random()
        if kind < 0.15:
            value = net.enlarge(value, rng.choice([2, 3]), *rng.choice([(0, 1), (1, 3)]))
        elif kind < 0.25:
            value = net.conv(net.concat(net.conv(value, 1), net.conv(value, rng.choice([1, 3]))), rng.choice([1, 3]))
        elif kind < 0.45:
            inner = net.conv(value, 3)
            other = value if rng.random() < 0.5 else net.conv(value, 1)
            value = net.join(other, net.conv(inner, rng.choice([1, 3])), rng.choice([(), (0, 1)]))
        else:
            kernel = rng.choice([1, 2, 3, 5])
            stride = rng.choice([1, 1, 2])
            if net.graph.values[value].shape[1] < kernel + 2:
                kernel, stride = 1, 1
            value = net.conv(value, kernel, stride, pad=rng.choice([0, kernel // 2]))
    return net.finish(value)


@pytest.mark.parametrize("seed", range(6))
def test_every_segment_of_a_random_network_verifies(seed: int) -> None:
    graph = _random_net(random.Random(seed))
    checked = 0
    for last in range(len(graph.nodes)):
        for rows in (1, 2, 3, 8):
            for pixels, reverse in ((0, False), (0, True), (1, False), (1, True), (8, False)):
                for segment in segments_ending(graph, last, rows, pixels, reverse):
                    verified(graph, segment)
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


def test_values_that_become_one_share_its_ring() -> None:
    net = Net(16)
    left, right = net.conv(net.input, 1), net.conv(net.input, 3)
    cat = net.concat(left, right)
    graph = net.finish(net.conv(cat, 3))
    structure = Structure.of(graph)
    segment = segments.segment_of(structure, 0, 2, 1)
    assert segment.streams[left] == segment.streams[right] and segment.streams[left].ring == 3
    tasks = allocate(schedule(graph, [segment], TARGET))
    held = [(b.value, b.size) for b in tasks.buffers if b.first >= 0 and b.region is Region.SCRATCH]
    assert held == [(cat, 3 * 4 * 16)]
    verify(graph, tasks, TARGET)
    assert segments.try_segment(structure, 1, 2, 1) is None  # the other half of its rows would be missing


def test_values_that_become_one_are_stored_whole_where_another_segment_reads_it() -> None:
    net = Net(16)
    cat = net.concat(net.conv(net.input, 1), net.conv(net.input, 3))
    graph = net.finish(net.join(net.conv(cat, 1), net.conv(cat, 3)))
    segment = segments.segment_of(Structure.of(graph), 1, 2, 2)
    assert segment.streams[graph.nodes[1].output].ring == 0
    verified(graph, segment)


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


def test_rows_made_in_parts_are_held_in_shorter_rings() -> None:
    net = Net(32)
    first = net.conv(net.input, 3)
    graph = net.finish(net.conv(net.conv(first, 3, 2), 3, 2))
    structure = Structure.of(graph)
    together = segments.segment_of(structure, 0, 2, 1)
    parts = segments.segment_of(structure, 0, 2, 1, pixels=1)
    assert (together.streams[first].ring, parts.streams[first].ring) == (5, 3)
    assert together.body == ((0, 0), (1, 0), (2, 0))
    assert parts.body == ((0, 0), (0, 1), (1, 0), (0, 2), (0, 3), (1, 1), (2, 0))


def test_what_is_enlarged_streams_where_an_iteration_takes_whole_rows() -> None:
    net = Net(8)
    small = net.conv(net.input, 3)
    graph = net.finish(net.conv(net.enlarge(small, 2), 1))
    structure = Structure.of(graph)
    streams = segments.segment_of(structure, 0, 2, 2).streams
    assert (streams[small].advance, streams[small].ring) == (1, 1)
    assert [s.first for s in segments_ending(graph, 2, 1, 0, False)] == [2, 1]  # one row of two: half a row
    assert [s.first for s in segments_ending(graph, 2, 2, 0, True)] == [2, 1]  # not from the bottom up


@pytest.mark.parametrize("last", [3, 4], ids=["into rows that stay", "into passing rows"])
def test_what_is_overwritten_in_place_needs_no_rows_of_its_own(last: int) -> None:
    net = Net(16)
    left, right = net.conv(net.input, 1), net.conv(net.input, 1)
    joined = net.join(left, right, in_place=(0, 1))
    out = net.conv(joined, 3 if last == 3 else 1)
    graph = net.finish(out if last == 3 else net.conv(out, 1))
    structure = Structure.of(graph)
    segment = segments.segment_of(structure, 0, last, 1)
    assert segments.slot_of(structure, segment.streams, right) == joined
    assert segments.slot_of(structure, segment.streams, left) == -1  # only one of two can lie there
    tasks = allocate(schedule(graph, [segment], TARGET))
    assert right not in {b.value for b in tasks.buffers if b.first >= 0}
    verify(graph, tasks, TARGET)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 2), (1, 3), (2, 3), (2, 5)])
def test_what_skips_rows_holds_too_few_for_what_is_overwritten_in_place(kernel: int, stride: int) -> None:
    """An iteration makes `stride` rows, of which the last reader holds `kernel`: those written in advance need their own."""
    net = Net(20)
    left, right = net.conv(net.input, 1), net.conv(net.input, 1)
    joined = net.join(left, right, in_place=(0, 1))
    graph = net.finish(net.conv(joined, kernel, stride, pad=0))
    structure = Structure.of(graph)
    for rows, pixels, reverse in ((1, 0, False), (2, 0, False), (1, 1, False), (1, 0, True)):
        segment = segments.segment_of(structure, 0, 3, rows, pixels=pixels, reverse=reverse)
        slot = segments.slot_of(structure, segment.streams, right)
        assert slot == (joined if segment.streams[joined].ring >= segment.streams[right].ring else -1)
        verified(graph, segment)
