from __future__ import annotations

import numpy as np

from openneutron.compiler.l1 import KernelGraph
from openneutron.compiler.plan.constants import constants_of
from openneutron.microcode.storage.sections import raw
from tests.compiler.graphs import Net


def _graph(*contents: bytes) -> KernelGraph:
    """One convolution for each constant, which is its weights; their tables are all the same."""
    net = Net(4)
    value = net.input
    for _ in contents:
        value = net.conv(value, 1)
    for node, content in zip(net.graph.nodes, contents, strict=True):
        node.operands[1] = np.frombuffer(content, np.uint8)
    return net.finish(value)


def _weights(graph: KernelGraph, at: int) -> np.ndarray:
    data = graph.nodes[at].operands[1]
    assert isinstance(data, np.ndarray)
    return data


def test_each_constant_lies_where_its_offset_says() -> None:
    graph = _graph(b"a" * 20, b"b" * 64, b"c" * 3)
    constants = constants_of(graph)
    offsets = [constants.offset(_weights(graph, at)) for at in range(3)]
    assert [constants.block[at : at + 3] for at in offsets] == [b"aaa", b"bbb", b"ccc"]
    assert all(at % 16 == 0 for at in offsets) and len(constants.block) % 16 == 0


def test_equal_constants_are_stored_once() -> None:
    middle = bytearray(200)
    middle[100] = 1
    graph = _graph(bytes(200), bytes(middle), bytes(200))  # equal at both ends, which is what is compared first
    constants = constants_of(graph)
    first, second, third = (constants.offset(_weights(graph, at)) for at in range(3))
    assert first == third != second
    assert len(constants.block) == 2 * 208 + 96  # and one table


def test_plain_constants_have_no_coded_size() -> None:
    graph = _graph(b"a" * 32)
    constants = constants_of(graph)
    assert constants.coded_sizes() == {}
    constants.sections = (raw(len(constants.block)),)
    assert constants.coded_sizes()[id(_weights(graph, 0))] == 32
