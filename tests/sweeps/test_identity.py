from __future__ import annotations

from pathlib import Path

import pytest

import openneutron
from openneutron.machine import targets
from openneutron.sweeps.identity import code_version, environment, identity_of, key_of
from openneutron.sweeps.plan import Model, make_plan


def test_a_file_is_its_bytes(folder: Path) -> None:
    before = identity_of(Model("convnet.tflite"))
    (folder / "convnet.tflite").rename(folder / "renamed.tflite")
    assert identity_of(Model("renamed.tflite")) == before != identity_of(Model("sandwich.tflite"))


def test_a_factory_is_its_code_and_its_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_nets.py").write_text("def make(width): ...")
    one, other = (Model("own_nets:make", (("width", width),)) for width in (1, 2))
    before = identity_of(one)
    assert before != identity_of(other)
    (folder / "own_nets.py").write_text("def make(width): return 1")
    assert identity_of(one) != before


def test_a_key_names_model_options_and_version() -> None:
    variants = make_plan("cifarnet", {"target": "all"}).variants
    keys = {key_of(one, model, version) for one in variants for model in "ab" for version in "12"}
    assert len(keys) == 2 * 2 * len(targets.chips())


def test_the_environment_names_what_results_depend_on() -> None:
    assert code_version().startswith(f"{openneutron.__version__}+")
    assert environment()["openneutron"] == code_version() and "torch" in environment()
