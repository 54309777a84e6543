from __future__ import annotations

import pytest
import torch

import openneutron
from openneutron.errors import OptionError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.passes.cut_head import cut_head
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from tests import tiny


def _detector() -> bytes:
    import numpy as np

    g = GraphBuilder()
    x, y, z = (g.tensor(name, (1, 16), DType.INT8, 0.1, 0) for name in ("x", "scores", "squares"))
    g.op("RELU", [x], [y])
    g.op("MUL", [y, y], [z], fused_activation_function="NONE")
    k = g.tensor("k", (), DType.INT32, data=np.array(4, np.int32))
    best, at = g.tensor("best", (1, 4), DType.INT8, 0.1, 0), g.tensor("at", (1, 4), DType.INT32)
    g.op("TOPK_V2", [y, k], [best, at])
    last = g.tensor("last", (1, 4), DType.INT8, 0.1, 0)
    g.op("RELU", [best], [last])
    return write_model(g.finish([x], [last, z]))


def test_the_graph_ends_before_top_k_and_other_outputs_stay() -> None:
    graph = read_model(_detector()).main
    assert cut_head(graph) == ("squares", "scores")
    assert [op.code for op in graph.operators] == ["RELU", "MUL"]
    assert "k" not in {tensor.name for tensor in graph.tensors}
    assert cut_head(graph) == ()


def test_a_file_is_cut_when_asked_for_and_says_so() -> None:
    report = openneutron.compile(_detector(), target="imx95", cut_head=True).report
    assert report.totals.operators_total == report.totals.operators_converted == 2
    assert any("outputs are squares, scores" in note for note in report.notes)
    with pytest.raises(OptionError, match="there is no head to cut"):
        openneutron.compile(tiny.convnet(), cut_head=True)
    with pytest.raises(OptionError, match="cut_head is for ONNX and LiteRT files"):
        openneutron.compile(torch.nn.ReLU(), (torch.zeros(1),), cut_head=True)
