"""copy: nested loops of bytes, and the nodes other stages ask for."""

from __future__ import annotations

import pytest

from openneutron.compiler.kernels.copy import copy_node, copy_params, loops_fit
from openneutron.compiler.l1 import Alias, KernelGraph, Value
from openneutron.compiler.numbers.strides import Loop
from openneutron.errors import InternalError
from openneutron.microcode.table import ElementType


def test_unused_loops_make_one_step() -> None:
    params = copy_params([Loop(3, 1, 4), Loop(4, 3, 1)], input_offset=7)
    assert params.input_offset == 7
    assert params.dims == (1, 1, 1, 1, 3, 4)
    assert params.input_strides[-2:] == (1, 3) and params.output_strides[-2:] == (4, 1)


def test_dense_values_are_one_run() -> None:
    graph = KernelGraph()
    source = graph.add_value(Value("x", (2, 3, 4, 5), ElementType.INT32))
    output = graph.add_value(Value("y", (2, 3, 4, 5), ElementType.INT32))
    assert copy_node(graph, source, output).params.dims == (1, 1, 1, 1, 1, 120)  # elements


def test_a_strided_alias_keeps_its_strides() -> None:
    graph = KernelGraph()
    root = graph.add_value(Value("root", (1, 4, 4, 8), ElementType.INT8))
    part = graph.add_value(Value("part", (1, 4, 4, 3), ElementType.INT8, alias=Alias(root, 5, 128, 32, 8)))
    output = graph.add_value(Value("y", (1, 4, 4, 3), ElementType.INT8))
    params = copy_node(graph, part, output).params
    assert params.dims[-2:] == (16, 3) and params.input_strides[-2:] == (8, 1)


def test_too_many_loops() -> None:
    loops = [Loop(2, 3 * 5**k, 7 * 11**k) for k in range(7)]
    assert "7 nested loops" in str(loops_fit(loops).reason)
    with pytest.raises(InternalError, match="7 loops"):
        copy_params(loops)
