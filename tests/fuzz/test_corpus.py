"""Models on which something failed once: compiled, proved and compared for every target, or refused as what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openneutron.convert import convert
from openneutron.errors import InternalError, OpenNeutronError
from openneutron.machine import targets
from openneutron.onnx import load
from openneutron.options import Options
from tests.fuzz.compile_once import OPTIONS, compare

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.tflite"))
DAMAGED = sorted((Path(__file__).parent / "corpus" / "damaged").iterdir())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_failed_once(path: Path) -> None:
    """`NAME.json` beside a model has the options with which it failed; a model that is damaged has "refused" there."""
    beside = path.with_suffix(".json")
    given = json.loads(beside.read_text("utf-8")) if beside.is_file() else {}
    data = path.read_bytes()
    if given.get("refused"):
        with pytest.raises(OpenNeutronError, match=given["refused"]):
            compare(data, Options(), 0)
        return
    if given:
        compare(data, Options(**{name: given[name] for name in OPTIONS if name in given}), 0)
    for target in targets.names():
        compare(data, Options(target=target), 0)


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_damage_that_was_a_traceback_once(path: Path) -> None:
    """It is compiled around what is damaged, or refused as what it is."""
    for target in targets.names():
        try:
            if path.suffix == ".onnx":
                load(path)
            else:
                convert(path.read_bytes(), Options(target=target))
        except OpenNeutronError as error:
            assert not isinstance(error, InternalError)


def test_there_is_a_corpus() -> None:
    assert len(DAMAGED) >= 8
    assert len(CORPUS) >= 5
