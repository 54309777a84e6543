"""LiteRT graphs by module, with constants as attributes and called graphs linked."""

from __future__ import annotations

from openneutron.explore.litert import draw_litert
from openneutron.litert.read import read_model
from tests import tiny
from tests.loops import Loop


def test_constants_are_attributes_and_options_readable() -> None:
    (drawing,) = draw_litert(read_model(tiny.convnet()))
    conv = next(node for node in drawing.nodes if node.label == "CONV_2D")
    assert [edge.source for edge in conv.edges] == ["input 0"]
    assert "int8" in conv.attributes["constant 1"] and conv.attributes["strideH"] == "1"
    assert {"tensor_name", "tensor_shape", "quantization"} <= set(conv.outputs[0])
    assert drawing.overlays == ()


def test_scopes_of_names_are_modules_and_loops_link_their_graphs() -> None:
    model = read_model(tiny.convnet())
    first = model.main.operators[0]
    model.main.tensors[first.outputs[0]].name = "net/stem/Relu;net/stem/Conv2D"
    (drawing,) = draw_litert(model)
    assert next(node for node in drawing.nodes if node.label == first.code).namespace == "net/stem"
    looped = draw_litert(read_model(Loop(at_run_time=True).data()))
    (loop,) = (node for node in looped[0].nodes if node.label == "WHILE")
    assert len(loop.graphs) == 2 and set(loop.graphs) <= {one.id for one in looped}
