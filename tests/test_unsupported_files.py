from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from openneutron.errors import FormatError
from openneutron.litert import DType, GraphBuilder
from openneutron.litert.read import read_model
from openneutron.litert.write import write_model
from openneutron.unsupported_files import refuse_unsupported_file


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"")
    return path


def test_files_of_other_tools_are_named_with_the_way_in(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n....")
    (tmp_path / "renamed.tflite").write_bytes(b"\x89HDF\r\n\x1a\n....")
    (tmp_path / "frozen.pb").write_bytes(b"\x0a\x10")
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    archive(tmp_path / "a.keras", "metadata.json", "config.json", "model.weights.h5")
    archive(tmp_path / "weights.pt", "weights/data.pkl", "weights/data/0")
    archive(tmp_path / "script.pt", "script/data.pkl", "script/constants.pkl", "script/code/__torch__.py")
    for name, said in (
        ("a.h5", "Keras model"),
        ("renamed.tflite", "Keras model"),
        ("frozen.pb", "TensorFlow graph"),
        ("saved", "SavedModel"),
        ("a.keras", "Keras model"),
        ("weights.pt", "torch.save wrote it"),
        ("script.pt", "TorchScript"),
    ):
        with pytest.raises(FormatError, match=f"{name}: .*{said}.*Hint: "):
            refuse_unsupported_file(tmp_path / name)


def test_what_is_nobody_elses_passes(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(b"....TFL3")
    (tmp_path / "torn.pt").write_bytes(b"PK\x03\x04torn")
    archive(tmp_path / "a.npz", "x.npy")
    for name in ("a.tflite", "torn.pt", "a.npz", "missing.h5", "."):
        refuse_unsupported_file(tmp_path / name)


@pytest.mark.parametrize(("code", "said"), [("ethos-u", "Ethos-U by Vela"), ("edgetpu-custom-op", "Edge TPU")])
def test_files_compiled_for_other_accelerators_are_refused_by_name(code: str, said: str) -> None:
    g = GraphBuilder()
    x, y = (g.tensor(name, (1, 4), DType.INT8, scale=0.1, zero_point=0) for name in "xy")
    g.custom(code, [x], [y])
    data = write_model(g.finish([x], [y]))
    with pytest.raises(FormatError, match=f"m.tflite: it was compiled .*{said}"):
        read_model(data, source="m.tflite")
