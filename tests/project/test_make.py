"""Projects from models of every kind; what cannot become one is refused before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import openneutron
from openneutron.errors import OptionError
from openneutron.project import make, write
from openneutron.project.make import CORE_TARGET
from tests import tiny


def test_a_model_is_compiled_for_the_core(tmp_path: Path) -> None:
    source = tmp_path / "my-model.tflite"
    source.write_bytes(tiny.convnet())
    project = make(source, platform="cmake", board="m33")
    assert json.loads(project.files["project.json"])["target"] == CORE_TARGET
    assert b"project(my_model " in project.files["CMakeLists.txt"]
    assert (project.board.name, project.samples) == ("mps2-an505", 2)


def test_a_compiled_file_is_taken_as_it_is(tmp_path: Path) -> None:
    program = openneutron.compile(tiny.convnet(), target="mcxn94x")
    file = tmp_path / "compiled.tflite"
    program.save(file)
    for given in (file, program):
        project = make(given, platform="cmake", board="frdmmcxn947")
        assert json.loads(project.files["project.json"])["target"] == "mcxn94x"
    with pytest.raises(OptionError, match="optimize: it is compiled already"):
        make(file, platform="cmake", board="m33", optimize="fast")


def test_given_samples_are_used(tmp_path: Path) -> None:
    source = tmp_path / "model.tflite"
    source.write_bytes(tiny.convnet())
    image = np.arange(192, dtype=np.uint8).view(np.int8).reshape(1, 8, 8, 3)
    np.save(tmp_path / "a.npy", image)
    np.savez(tmp_path / "b.npz", image=image)
    project = make(source, platform="cmake", board="m33", inputs=[tmp_path / "a.npy", tmp_path / "b.npz"])
    words = ", ".join(f"0x{word:08x}" for word in image.reshape(-1).view("<u4")[:9])
    assert project.files["model/samples.c"].decode().count(words) == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"platform": "arduino"}, "unknown platform 'arduino'.*cmake"),
        ({"board": "arduino"}, "unknown board"),
        ({"samples": 0}, "no sample"),
    ],
)
def test_a_wrong_option_leaves_no_folder(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    source = tmp_path / "model.tflite"
    source.write_bytes(tiny.convnet())
    given = {"platform": "cmake", "board": "m33"} | options
    with pytest.raises(OptionError, match=reason):
        write(source, tmp_path / "made", **given)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


def test_a_model_that_is_too_large_for_the_board_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "model.tflite"
    source.write_bytes(tiny.convnet())
    monkeypatch.setattr("openneutron.project.sizes.STACK_BYTES", 1 << 20)
    with pytest.raises(OptionError, match=r"frdmmcxn947: the model is too large for it: .* bytes of RAM"):
        write(source, tmp_path / "made", platform="cmake", board="frdmmcxn947")
    assert [path.name for path in tmp_path.iterdir()] == ["model.tflite"]


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    source = tmp_path / 'a"\n${x} *: `b`.tflite'
    source.write_bytes(tiny.convnet())
    files = make(source, platform="zephyr", board="frdmmcxn947").files
    name = "a____x_ __ _b_.tflite"
    assert files["Kconfig"].decode().splitlines()[1] == f'mainmenu "{name}"'
    assert files["CMakeLists.txt"].decode().startswith(f"# {name} for ")
    assert files["README.md"].decode().startswith(f"# {name} on ")
    assert "project(a_x_b)" in files["CMakeLists.txt"].decode()
