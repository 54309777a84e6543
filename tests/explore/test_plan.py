"""Which instruction's result another reads, in programs that write a value more than once."""

from __future__ import annotations

from openneutron.explore.plan import draw_plan
from openneutron.microcode.pte import PlanCall, PlanCalls, PlanTensor, PlanValue

TENSOR = PlanTensor("int8", (1, 4), (0, 1))
VALUES = {
    0: PlanValue(TENSOR, constant=False),
    1: PlanValue(PlanTensor("float32", (2,), (0,)), constant=True),
    2: PlanValue(TENSOR, constant=False, arena=1, offset=64),
    3: PlanValue(PlanTensor("int8", (1, 3, 2, 2), (0, 2, 3, 1)), constant=False, arena=1, offset=128),
}


def test_results_are_what_is_named_first_and_what_is_written_again() -> None:
    calls = (
        PlanCall("aten::mul.out", -1, (0, 1, 2, 2)),
        PlanCall("SomeBackend", 0, (2, 3)),
        PlanCall("aten::add_.out", -1, (3, 2)),
    )
    drawing = draw_plan(PlanCalls((0,), (2, 3), VALUES, calls))
    nodes = {node.id: node for node in drawing.nodes}
    assert nodes["call 0"].attributes["constant 1"] == "2, float32"
    assert [edge.source for edge in nodes["call 1"].edges] == ["call 0"]
    assert nodes["call 1"].outputs[0]["order"] == "channels last" and nodes["call 1"].graphs == ()
    assert [edge.source for edge in nodes["call 2"].edges] == ["call 1"]
    assert [edge.source for edge in nodes["output 0"].edges] == ["call 2"]
    assert [edge.source for edge in nodes["output 1"].edges] == ["call 1"]
    assert {one.name: one.values for one in drawing.overlays}["output bytes"]["call 1"] == 12.0
