"""Reading ONNX files: what is read, and how what is wrong is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from openneutron.errors import FormatError, OpenNeutronError, OptionError, UnsupportedError
from openneutron.files import kind_of
from openneutron.onnx.read import describe_node, opset_of, read_model
from tests.onnx.models import convnet, model, node
from tests.sampling import examples


def saved(tmp_path: Path, made: onnx.ModelProto, name: str = "model.onnx") -> Path:
    path = tmp_path / name
    path.write_bytes(made.SerializeToString())
    return path


def test_a_model_is_read_from_a_file_and_from_bytes(tmp_path: Path) -> None:
    path = saved(tmp_path, convnet())
    assert len(read_model(path).graph.node) == len(read_model(path.read_bytes()).graph.node) == 9
    assert opset_of(read_model(path)) == 21
    assert kind_of(path.read_bytes()) == "onnx"


def test_nodes_in_any_order_are_sorted() -> None:
    made = convnet()
    nodes = list(made.graph.node)[::-1]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    assert [one.op_type for one in read_model(made.SerializeToString()).graph.node][:2] == ["Conv", "Relu"]


def test_functions_of_the_model_are_written_out() -> None:
    function = helper.make_function(
        "local", "Twice", ["x"], ["y"], [node("Add", ["x", "x"], ["y"])], [helper.make_opsetid("", 21)]
    )
    made = model(
        [node("Twice", ["x"], ["y"], domain="local")], {"x": [2]}, ["y"],
        imports=[helper.make_opsetid("local", 1)], functions=[function],
    )  # fmt: skip
    assert [one.op_type for one in read_model(made.SerializeToString()).graph.node] == ["Add"]


def test_external_data_is_read_and_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(convnet(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    weights = {one.name: one for one in read_model(path).graph.initializer}
    assert np.array_equal(
        onnx.numpy_helper.to_array(weights["w1"]), onnx.numpy_helper.to_array(convnet().graph.initializer[0])
    )
    with pytest.raises(OptionError, match="lies in another file"):
        read_model(path.read_bytes())
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(FormatError, match=r"bytes 0 to \d+ of 'weights.bin', which has 5"):
        read_model(path)
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(FormatError, match=r"lies in 'weights\.bin', which is not there"):
        read_model(path)


def test_external_data_outside_the_folder_is_refused(tmp_path: Path) -> None:
    made = convnet()
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../secret.bin"
    (tmp_path / "deep").mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(4000))
    with pytest.raises(FormatError, match="outside the model's folder"):
        read_model(saved(tmp_path / "deep", made))


def _cyclic() -> onnx.ModelProto:
    return model([node("Relu", ["y"], ["x"], "one"), node("Relu", ["x"], ["y"], "two")], {"i": [1]}, ["y"])


BAD = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello, this is no model", "no ONNX model"),
    "truncated": (convnet().SerializeToString()[:-200], "damaged|no graph|checker refuses"),
    "old opset": (convnet(opset=6).SerializeToString(), "opset 6; opsets 7 to"),
    "new opset": (convnet(opset=999).SerializeToString(), "knows opsets up to"),
    "no outputs": (model([node("Relu", ["x"], ["y"])], {"x": [1]}, []).SerializeToString(), "no outputs"),
    "cycle": (_cyclic().SerializeToString(), "node `one` .* depends on its own result"),
    "missing attribute": (
        model([node("Concat", ["x", "x"], ["y"], "/cat")], {"x": [1]}, ["y"]).SerializeToString(),
        "axis.*/cat",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    data, sentence = BAD[name]
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    with pytest.raises(OpenNeutronError, match=sentence) as raised:
        read_model(path)
    assert str(path) in str(raised.value)


def test_models_over_two_gigabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.truncate((1 << 31) + 1)
    with pytest.raises(UnsupportedError, match="over 2 GiB"):
        read_model(path)


@examples(40)
@given(st.integers(0, 4000), st.binary(min_size=1, max_size=6))
def test_damage_is_an_error_of_ours_or_nothing(at: int, patch: bytes) -> None:
    data = bytearray(convnet().SerializeToString())
    at %= len(data)
    data[at : at + len(patch)] = patch
    try:
        read_model(bytes(data))
    except OpenNeutronError as error:
        assert error.message


def test_a_node_without_a_name_goes_by_its_output() -> None:
    assert describe_node(node("Relu", ["x"], ["y"])) == "node `y` (Relu)"
    assert describe_node(node("Relu", ["x"], ["y"], "/r")) == "node `/r` (Relu)"


def test_names_that_are_not_text_are_refused() -> None:
    damaged = convnet().SerializeToString().replace(b"Relu", b"Re\xfcu", 1)
    with pytest.raises(FormatError, match=r"is not text: b.*Re\\xfcu"):
        read_model(damaged, name="model.onnx")
