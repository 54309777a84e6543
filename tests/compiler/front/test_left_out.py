"""Patterns of operators that stay on the CPU: what they name, and those that name nothing."""

from __future__ import annotations

import pytest

import openneutron
from openneutron.compiler.front.left_out import left_out
from openneutron.litert.read import read_model
from tests import tiny


def test_a_pattern_names_operators_and_their_outputs() -> None:
    graph = read_model(tiny.convnet(), source="m").main
    conv = next(op for op in graph.operators if op.code == "CONV_2D")
    name = graph.tensors[conv.outputs[0]].name
    for pattern in ("CONV_2D", "CONV*", name):
        assert left_out(graph, conv, (pattern,))
    assert not left_out(graph, conv, ("CONV", "DEPTHWISE_CONV_2D"))


@pytest.mark.parametrize("given", ["CONV_2D,NO_SUCH", ["CONV_2D, NO_SUCH"], ["CONV_2D", "NO_SUCH"]])
def test_a_compile_warns_of_patterns_that_name_nothing(given: object) -> None:
    report = openneutron.compile(tiny.convnet(), operators_not_to_delegate=given).report
    assert [one for one in report.warnings if "matches no node" in one] == [
        "operators_not_to_delegate: 'NO_SUCH' matches no node, so it has no effect"
    ]
    assert [op.code for op in report.operators if op.reason_code == "left_out"] == ["CONV_2D"]
