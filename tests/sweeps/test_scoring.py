from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openneutron
from openneutron.analyze.data.source import Data
from openneutron.errors import OptionError
from openneutron.sweeps.scoring import check_scoring, data_identity, score_compiled, score_float


@pytest.fixture
def compiled(labelled: Path) -> bytes:
    return openneutron.compile("convnet.tflite").data


def test_an_accuracy_with_its_interval(compiled: bytes) -> None:
    whole = score_compiled(Data("d-0.npz"), compiled, where="convnet")
    assert not whole.problem and whole.row["samples"] == 12
    assert whole.row["accuracy_low"] < whole.row["accuracy"] < whole.row["accuracy_high"]
    assert score_compiled(Data("d-{0..1}.npz", limit=15), compiled, where="convnet").row["samples"] == 15


def test_data_that_lacks_a_part_or_does_not_fit_is_named(compiled: bytes) -> None:
    part = score_compiled(Data("d-{1..2}.npz"), compiled, where="convnet")
    assert part.row["samples"] == 12 and part.problem == "left out: d-2.npz: there is no such file"
    np.savez("other.npz", x=np.zeros((2, 7), np.float32), y=np.zeros(2, int))
    none = score_compiled(Data("other.npz"), compiled, where="convnet")
    assert not none.row and none.problem.startswith("no accuracy: convnet: a sample of x is [7]")


def test_a_network_of_the_zoo_brings_its_images() -> None:
    from openneutron.executorch.capture.sources import find

    loaded = find("cifarnet").load()
    assert score_float(Data("zoo", limit=20), loaded, where="cifarnet").row["float_accuracy"] > 0.6
    assert score_float(Data("zoo"), find("mobilenet_v2").load(), where="mobilenet_v2").problem.startswith("no accuracy")
    with pytest.raises(OptionError, match="no network of the zoo"):
        check_scoring(Data("zoo"), "package.module:factory")


def test_data_are_known_by_their_files_and_how_they_are_read(labelled: Path) -> None:
    def identity(*given: object) -> str:
        return data_identity(Data(*given), lambda module: f"code of {module}")  # type: ignore[arg-type]

    first = identity("d-0.npz")
    found = {first, identity("d-1.npz"), identity("d-{0..1}.npz"), identity("d-0.npz", 5), identity("gen:samples")}
    assert len(found) == 5 and identity("d-0.npz") == first
    np.savez("d-0.npz", x=np.zeros((2, 8, 8, 3), np.float32), y=np.zeros(2, int))
    assert identity("d-0.npz") != first
