"""Detectors end where top-k and non-maximum suppression begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openneutron
from openneutron.errors import OptionError
from openneutron.onnx.cut_head import cut_head, has_suppression, hints
from openneutron.onnx.importer import load

onnx = pytest.importorskip("onnx")
helper, FLOAT, INT64 = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def _model(select: str) -> Any:
    """A convolution that gives boxes and scores, and what selects among them."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(0, 0.2, (6, 3, 1, 1)).astype(np.float32), "shape": np.array([1, 6, 64]), "halves": np.array([4, 2]),
        "most": np.array([5]), "k": np.array([5]), "limit": np.array([0.5], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"]),
        helper.make_node("Reshape", ["y", "shape"], ["flat"]),
        helper.make_node("Split", ["flat", "halves"], ["rows", "scores"], axis=1),
        helper.make_node("Transpose", ["rows"], ["boxes"], perm=[0, 2, 1]),
    ]
    if select == "NonMaxSuppression":
        nodes.append(helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "limit"], ["picked"]))
        outputs = [helper.make_tensor_value_info("picked", INT64, ["n", 3])]
    elif select == "TopK":
        nodes += [
            helper.make_node("TopK", ["scores", "k"], ["best", "at"]),
            helper.make_node("Mul", ["best", "best"], ["squared"]),
        ]
        outputs = [
            helper.make_tensor_value_info("squared", FLOAT, [1, 2, 5]),
            helper.make_tensor_value_info("boxes", FLOAT, [1, 64, 4]),
        ]
    else:
        outputs = [helper.make_tensor_value_info("boxes", FLOAT, [1, 64, 4])]
    graph = helper.make_graph(
        nodes, "detector", [helper.make_tensor_value_info("x", FLOAT, [1, 3, 8, 8])], outputs,
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_outputs_are_what_went_into_the_selection_and_those_beside_it() -> None:
    model = _model("TopK")
    assert cut_head(model) == ("boxes", "scores")
    assert [node.op_type for node in model.graph.node] == ["Conv", "Reshape", "Split", "Transpose"]
    assert {one.name for one in model.graph.initializer} == {"w", "shape", "halves"}
    assert cut_head(model) == ()


def test_suppression_is_cut_in_any_case_and_said() -> None:
    model = _model("NonMaxSuppression")
    assert has_suppression(model) and not has_suppression(_model("TopK"))
    calibration = [(np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32),)]
    program = openneutron.compile(model.SerializeToString(), calibration=calibration, target="imx95")
    assert not any("training mode" in note for note in program.report.notes)
    assert any("the head is cut where top-k and non-maximum suppression begin" in one for one in program.report.notes)
    shapes = [tuple(one.shape) for one in program.run(calibration[0][0])]
    assert shapes == [(1, 64, 4), (1, 2, 64)]


def test_top_k_is_cut_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from openneutron.cli.main import run

    (tmp_path / "yolo.onnx").write_bytes(_model("TopK").SerializeToString())
    words = ["compile", str(tmp_path / "yolo.onnx"), "--target", "imx95", "-o", str(tmp_path / "yolo.pte")]
    assert run([*words, "--cut-head"]) == 0
    assert "the head is cut" in capsys.readouterr().out


def test_top_k_that_is_not_cut_is_pointed_at() -> None:
    assert hints(_model("")) == () and load(_model("").SerializeToString()).notes == ()
    (note,) = load(_model("TopK").SerializeToString()).notes
    assert "top-k (output `best`) sorts on the CPU" in note and "--cut-head" in note
    (said,) = load(_model("TopK").SerializeToString(), cut=True).notes
    assert said.startswith("the head is cut")


def test_a_model_without_a_head_is_refused() -> None:
    with pytest.raises(OptionError, match="there is no head to cut"):
        openneutron.compile(_model("").SerializeToString(), cut_head=True)
