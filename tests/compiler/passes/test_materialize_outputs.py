from __future__ import annotations

import numpy as np

from openneutron.compiler.l1 import Alias, Value, check
from openneutron.compiler.passes.materialize_outputs import materialize_outputs
from openneutron.machine import targets
from openneutron.microcode.table import ElementType
from tests.compiler.graphs import Net

TARGET = targets.load("imxrt700")


def test_an_output_that_its_node_writes_whole_is_left() -> None:
    net = Net(8)
    graph = net.finish(net.conv(net.input, 1))
    assert materialize_outputs(graph, TARGET) == 0 and len(graph.nodes) == 1


def test_inputs_constants_parts_and_repeated_outputs_are_copied() -> None:
    net = Net(8)
    made = net.conv(net.input, 1)
    graph = net.graph
    constant = graph.add_value(Value("c", (1, 1, 1, 8), ElementType.INT8, data=np.zeros((1, 1, 1, 8), np.int8)))
    part = graph.add_value(Value("top", (1, 4, 4, 8), ElementType.INT8, alias=Alias(made, 0, 128, 32, 8)))
    graph.outputs = [net.input, constant, made, made, part]
    assert materialize_outputs(graph, TARGET) == 4
    check(graph)
    assert graph.outputs[2] == made, "the first to name it keeps it"
    roots = [graph.root(value) for value in graph.outputs]
    assert len(set(roots)) == 5 and net.input not in roots and constant not in roots
    assert [node.inputs() for node in graph.nodes[1:]] == [[net.input], [constant], [made], [part]]
