"""What `openneutron inspect` says about an ONNX model."""

from __future__ import annotations

from openneutron.onnx.describe import describe
from tests.onnx.models import convnet


def test_a_model_is_described_without_importing_it() -> None:
    found = describe(convnet(batch="n").SerializeToString())
    assert found.inputs[0].shape == ("n", 3, 16, 16) and found.inputs[0].dtype == "float"
    assert found.outputs[0].shape == ("shape not stated",)
    assert found.operators["Conv"] == 2
    assert "opset ai.onnx 21" in found.notes[0] and "open dimensions in image" in found.notes[1]


def test_operators_that_are_not_imported_are_named() -> None:
    made = convnet()
    made.graph.node[1].op_type, made.graph.node[1].domain = "Magic", "acme"
    entry = made.opset_import.add()
    entry.domain, entry.version = "acme", 1
    assert describe(made.SerializeToString()).notes[-1] == "not imported: Magic"
