from __future__ import annotations

from pathlib import Path

import pytest

from openneutron.errors import FormatError
from openneutron.sweeps.plan import make_plan
from openneutron.sweeps.toml import read_toml

ROOT = Path(__file__).parents[2]


def test_the_example_is_a_plan_of_eight() -> None:
    found = read_toml(ROOT / "examples" / "sweep.toml")
    assert len(make_plan(found.models, found.axes).variants) == 8


def test_files_are_meant_from_the_folder_of_the_toml(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (folder / "convnet.tflite").rename(inner / "convnet.tflite")
    (inner / "s.toml").write_text('[[model]]\nsource = "convnet.tflite"\n')
    assert read_toml("inner/s.toml").models == [{"source": "inner/convnet.tflite"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [("x =", "no TOML"), ("[grid]\n", r"no \[\[model\]\] table"), ("[modle]\n", r"unknown \['modle'\]")],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_toml(tmp_path / "s.toml")
