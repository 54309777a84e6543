"""The zoo's registry: models are found by file name, and listing them is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from openneutron import zoo
from openneutron.errors import OpenNeutronError


def test_names_are_the_files_of_the_folder() -> None:
    folder = Path(zoo.__file__).parent
    assert zoo.names() == sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("_"))
    assert "cifarnet" in zoo.names()


def test_adding_a_file_adds_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "newcomer.py").write_text("def load():\n    return 'the newcomer'\n")
    monkeypatch.setattr(zoo, "__path__", [*zoo.__path__, str(tmp_path)])
    assert "newcomer" in zoo.names()
    assert zoo.load("newcomer") == "the newcomer"


@pytest.mark.parametrize("name", ["cifernet", "", "_model", "cifarnet.py", "../cifarnet"])
def test_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(zoo.UnknownModelError, match=r"the zoo has no model .*; it has .*cifarnet") as caught:
        zoo.load(name)
    assert isinstance(caught.value, OpenNeutronError)
    assert list(caught.value.known) == zoo.names()


def test_a_near_miss_is_hinted_at() -> None:
    with pytest.raises(zoo.UnknownModelError, match="did you mean 'cifarnet'"):
        zoo.load("cifarnett")


def test_listing_the_zoo_does_not_import_torch() -> None:
    code = "import sys; from openneutron import zoo; assert zoo.names(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", zoo.names())
def test_every_model_is_ready_to_compile(name: str) -> None:
    loaded = zoo.load(name)
    assert loaded.name == name
    assert not loaded.model.training
    shapes = [tensor.shape for tensor in loaded.example_inputs]
    assert loaded.calibration
    assert all([tensor.shape for tensor in inputs] == shapes for inputs in loaded.calibration)
    if not loaded.trained:
        assert "untrained" in loaded.description
        with pytest.raises(OpenNeutronError, match="has no labelled test images"):
            loaded.test_images()
